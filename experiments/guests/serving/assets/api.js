// Requests to the server, with a key if it needs one. The key is kept in this browser tab only.
import { $ } from "./dom.js";

const KEPT = "ragbed.key";

async function request(path, body, signal, method = body ? "POST" : "GET") {
  const key = sessionStorage.getItem(KEPT);
  const headers = { ...(key && { Authorization: `Bearer ${key}` }), ...(body && { "Content-Type": "application/json" }) };
  try {
    // relative to the page, which may be served under a path
    return await fetch(path.slice(1), { method, headers, body: body && JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not respond. Is it still running?");
  }
}

async function call(path, body, signal, method) {
  let reply = await request(path, body, signal, method);
  while (reply.status === 401) {
    await askKey(sessionStorage.getItem(KEPT) !== null);
    reply = await request(path, body, signal, method);
  }
  if (reply.ok) return reply;
  const said = await reply.json().catch(() => ({}));
  const later = reply.headers.get("Retry-After");
  throw new Error(`${said.error?.message ?? `The server returned status ${reply.status}`}${later ? `. Try again in ${later} s.` : ""}`);
}

export const get = async (path) => (await call(path)).json();
export const post = async (path, body) => (await call(path, body)).json();
export const patch = async (path, body) => (await call(path, body, undefined, "PATCH")).json();
export const remove = async (path) => (await call(path, undefined, undefined, "DELETE")).json();
export const signedIn = () => sessionStorage.getItem(KEPT) !== null;

// Forget the key in this tab, and the cookie that stands for it.
export async function signOut() {
  await remove("/api/session");
  sessionStorage.removeItem(KEPT);
  location.assign(location.pathname);
}

// Yield the events of an answer as they arrive.
export async function* events(path, body, signal) {
  const reader = (await call(path, body, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const frames = (rest + value).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) {
      const data = frame.split("\n").find((line) => line.startsWith("data: "));
      if (data) yield JSON.parse(data.slice(6));
    }
  }
}

let asking = null;

// Ask for the key once, even if several requests were refused.
function askKey(wrong) {
  asking ??= new Promise((done) => {
    $("key-trouble").textContent = wrong ? "Unknown key." : "";
    $("key-field").value = "";
    $("key").oncancel = (event) => event.preventDefault();
    $("key").onclose = async () => {
      sessionStorage.setItem(KEPT, $("key-field").value.trim());
      await openSession();
      asking = null;
      done();
    };
    $("key").showModal();
  });
  return asking;
}

// Frames and images cannot send the key in a header, so the server sets a cookie for them.
export async function openSession() {
  const key = sessionStorage.getItem(KEPT);
  if (key) await request("/api/session", { key });
}
