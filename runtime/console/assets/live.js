"use strict";

// Ages beside times. The page has them in UTC.
const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
function age(seconds) {
  for (const [size, name] of units) {
    if (seconds >= size) return Math.floor(seconds / size) + " " + name;
  }
  return "0 s";
}
function showAges() {
  for (const time of document.querySelectorAll("time")) {
    const seconds = (Date.now() - Date.parse(time.dateTime)) / 1000;
    const text = seconds >= 0 ? age(seconds) + " ago" : "in " + age(-seconds);
    if (time.dataset.age !== text) time.dataset.age = text;
    if (!time.title) time.title = time.textContent + " UTC";
  }
}
showAges();
setInterval(showAges, 1000);

// What has changed comes as an object of HTML by the IDs of elements. The focus stays where it is.
function take(parts) {
  const focused = document.activeElement && document.activeElement.id;
  for (const [id, html] of Object.entries(parts)) {
    const element = document.getElementById(id);
    if (!element) continue;
    const scroll = element.querySelector(".scroll");
    const left = scroll ? scroll.scrollLeft : 0;
    element.innerHTML = html;
    const after = element.querySelector(".scroll");
    if (after) after.scrollLeft = left;
  }
  if (focused) {
    const again = document.getElementById(focused);
    if (again && again !== document.activeElement) again.focus({preventScroll: true});
  }
  showAges();
}

const live = document.getElementById("live");
if (document.body.dataset.events) {
  const events = new EventSource(document.body.dataset.events);
  events.onopen = () => { live.textContent = "live"; live.dataset.state = "live"; };
  events.onerror = () => { live.textContent = "not live"; delete live.dataset.state; };
  events.onmessage = (event) => take(JSON.parse(event.data));
} else {
  live.hidden = true;
}
