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
    const ago = seconds >= 0 ? age(seconds) + " ago" : "in " + age(-seconds);
    if (time.className) {
      // In a table the age takes the place of the time, which the title has.
      const text = time.className === "age" ? age(Math.max(0, seconds)) : ago;
      if (time.textContent !== text) time.textContent = text;
      continue;
    }
    if (time.dataset.age !== ago) time.dataset.age = ago;
    const title = time.textContent + " UTC";
    if (time.title !== title) time.title = title;
  }
}

// What can be chosen in a list. Without a script, a person chooses task by task.
function showChosen() {
  const all = document.getElementById("all");
  if (!all) return;
  const boxes = [...document.querySelectorAll("#bulk tbody input")];
  const chosen = boxes.filter((box) => box.checked).length;
  all.hidden = false;
  all.checked = chosen === boxes.length;
  all.indeterminate = chosen > 0 && chosen < boxes.length;
  document.getElementById("chosen").textContent = chosen + " chosen:";
}
document.addEventListener("change", (event) => {
  if (event.target.id === "all") {
    for (const box of document.querySelectorAll("#bulk tbody input")) box.checked = event.target.checked;
  }
  showChosen();
});
showChosen();
showAges();
setInterval(showAges, 1000);

// entered returns the attributes in which an element has what a person did, or what the server has given back of it.
function entered(element) {
  if (element.nodeName === "DETAILS") return ["open"];
  if (element.nodeName === "OPTION") return ["selected"];
  return element.nodeName === "INPUT" && element.type !== "hidden" && element.type !== "checkbox" ? ["value"] : ["checked"];
}

// become makes the content of an element like that of another one. It changes only what differs: the focus, the text that a
// person types, what is open and what is scrolled stay.
function become(element, wanted) {
  const ids = new Set([...wanted.children].map((child) => child.id));
  const old = new Map([...element.children].filter((child) => child.id).map((child) => [child.id, child]));
  let next = element.firstChild;
  for (const child of [...wanted.childNodes]) {
    while (next && next.id && !ids.has(next.id)) {
      next = next.nextSibling;
      (next ? next.previousSibling : element.lastChild).remove();
    }
    let same = child.id ? old.get(child.id) : next;
    if (!same || same.nodeName !== child.nodeName || (same.id || "") !== (child.id || "")) {
      element.insertBefore(child, next);
      continue;
    }
    if (same === next) next = next.nextSibling;
    else element.insertBefore(same, next);
    if (child.nodeType !== Node.ELEMENT_NODE) {
      if (same.data !== child.data) same.data = child.data;
      continue;
    }
    const kept = entered(same);
    for (const {name} of [...same.attributes]) {
      if (!child.hasAttribute(name) && !kept.includes(name)) same.removeAttribute(name);
    }
    for (const {name, value} of child.attributes) {
      if (same.getAttribute(name) !== value && !kept.includes(name)) same.setAttribute(name, value);
    }
    if (same.nodeName !== "TEXTAREA") become(same, child);
  }
  while (next) {
    const after = next.nextSibling;
    next.remove();
    next = after;
  }
}

// What has changed comes as an object of HTML by the IDs of elements.
function take(parts) {
  const focused = document.activeElement;
  for (const [id, html] of Object.entries(parts)) {
    const element = document.getElementById(id);
    if (!element) continue;
    const template = document.createElement("template");
    template.innerHTML = html;
    become(element, template.content);
  }
  // An element that has moved has lost it.
  if (focused.isConnected && focused !== document.activeElement) focused.focus({preventScroll: true});
  showAges();
  showChosen();
}

const live = document.getElementById("live");
let events;
let retry;

// watch opens the stream of changes. A page that nobody sees has none: a browser opens only few at a time.
function watch() {
  clearTimeout(retry);
  if (events) events.close();
  setLive(false);
  if (document.visibilityState === "hidden") return;
  events = new EventSource(document.body.dataset.events);
  events.onopen = () => setLive(true);
  events.onmessage = (event) => take(JSON.parse(event.data));
  events.onerror = () => {
    setLive(false);
    // The browser itself tries again only if there was no answer.
    if (events.readyState === EventSource.CLOSED) retry = setTimeout(watch, 5000);
  };
}
function setLive(is) {
  const text = is ? "live" : "not live";
  if (live.textContent === text) return;
  live.textContent = text;
  if (is) live.dataset.state = "live";
  else delete live.dataset.state;
}
if (document.body.dataset.events) {
  watch();
  document.addEventListener("visibilitychange", watch);
}
