// What a link within the page names takes the focus, so that Tab goes on from there.
function targetOf(address) {
  const target = document.getElementById(address.slice(1));
  if (target && !target.hasAttribute("tabindex")) target.tabIndex = -1;
  return target;
}

function focusOn(target) {
  target.scrollIntoView();
  target.focus({ preventScroll: true });
}

// The browser itself moves the focus where its target can have it.
addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#']");
  if (link) targetOf(link.getAttribute("href"));
});
if (targetOf(location.hash)) focusOn(targetOf(location.hash));
