// Filters hide rows. Without JavaScript they are not shown, and every row is.
const form = document.querySelector(".filters");
form.hidden = false;
form.addEventListener("change", () => {
  const wanted = [...form.elements].filter((one) => one.value !== "");
  for (const section of document.querySelectorAll("section[data-benchmark]")) {
    let left = 0;
    for (const row of section.querySelectorAll("tbody tr")) {
      row.hidden = wanted.some((one) => (row.dataset[one.name] ?? section.dataset[one.name]) !== one.value);
      left += !row.hidden;
    }
    section.querySelector(".empty").hidden = left > 0;
  }
});
