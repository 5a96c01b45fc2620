"use strict";
// A packed element holds gzipped UTF-8 in base64.
async function unpack(element) {
  const bytes = Uint8Array.from(atob(element.textContent.trim()), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}
