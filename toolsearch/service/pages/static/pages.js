// Everything works without this: it searches while one types, and opens explanations in place.

const PAUSE_MS = 120;

async function part(address, signal) {
  const response = await fetch(address, { signal, credentials: "same-origin" });
  if (response.redirected) location.reload(); // to sign in again
  return await response.text();
}

function live(form) {
  const into = document.getElementById(form.dataset.into);
  const status = document.getElementById("live");
  let waiting, running, shown = new URLSearchParams(new FormData(form)).toString();

  async function search() {
    const asked = new URLSearchParams(new FormData(form)).toString();
    if (asked === shown) return;
    shown = asked;
    running?.abort();
    const mine = (running = new AbortController());
    into.ariaBusy = "true";
    try {
      const html = await part(`${form.dataset.live}?${asked}`, mine.signal);
      into.innerHTML = html; // of this service, which escapes what it shows
      status.textContent = into.querySelector("[data-summary]")?.dataset.summary ?? "";
      history.replaceState(null, "", `${form.action.split("?")[0]}?${asked}`);
      into.ariaBusy = "false";
    } catch (error) {
      if (error.name === "AbortError") return;
      status.textContent = "The service does not answer.";
      into.ariaBusy = "false";
    }
  }

  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, PAUSE_MS);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(waiting);
    search();
  });
}

document.querySelectorAll("form[data-live]").forEach(live);

document.addEventListener(
  "toggle",
  async (event) => {
    const details = event.target;
    if (!details.open || !details.dataset?.src) return;
    const address = details.dataset.src;
    delete details.dataset.src;
    const text = await part(address).catch(() => null);
    if (text === null) {
      details.dataset.src = address;
      return;
    }
    details.querySelectorAll(":scope > :not(summary)").forEach((element) => element.remove());
    details.insertAdjacentHTML("beforeend", text);
  },
  true,
);

document.querySelectorAll("button[data-copy]").forEach((button) => {
  const source = button.parentElement.querySelector("[data-copied]");
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(source.value);
    button.textContent = "Copied";
  });
});

document.querySelectorAll("[data-events]").forEach((place) => {
  const bar = place.querySelector("progress");
  const stage = place.querySelector("[data-stage]");
  const events = new EventSource(place.dataset.events);
  events.addEventListener("progress", (event) => {
    const step = JSON.parse(event.data);
    if (step.total) {
      bar.max = step.total;
      bar.value = step.done;
    } else {
      bar.removeAttribute("value");
    }
    stage.textContent = step.total ? `${step.stage}, ${step.done} of ${step.total}` : step.stage;
  });
  events.addEventListener("ended", () => {
    events.close();
    location.reload();
  });
});
