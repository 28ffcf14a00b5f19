// What the tests do in the page of the MCP Inspector. The tests call a function again until it returns true, so each does
// only what is still to be done.
window.inspector = (() => {
  const shown = (element) => element.getClientRects().length > 0 && !element.disabled;
  const find = (selector, matches) => [...front().querySelectorAll(selector)].find((element) => shown(element) && matches(element));
  const lines = (element) => element.innerText.split('\n').map((line) => line.trim());
  const type = (field, value) => {
    Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), 'value').set.call(field, value);
    field.dispatchEvent(new Event('input', { bubbles: true })); // as React wants it
  };

  // front is the dialog that covers the page, or the page.
  const front = () => [...document.querySelectorAll('[role=dialog]')].findLast(shown) ?? document.body;

  // control finds a button, a tab or a switch by its name, or by a line of its text.
  const control = (name) => find('button, label, input', (element) =>
    element.getAttribute('aria-label')?.startsWith(name) || lines(element).includes(name));

  // labelled finds the field with a label.
  const labelled = (label) => {
    const named = find('label', (element) => lines(element).some((line) => line === label || line === `${label} *`));
    return named && document.getElementById(named.htmlFor) || find('input, textarea', (field) => field.ariaLabel === label);
  };

  // closer is the button that puts the outcome of a call away.
  const closer = () => control('Close results') ?? control('Close error');
  const outcome = () => closer().closest('[class*=Card-root], [class*=Paper-root]').innerText;
  // drawn reports whether a text has more than its headings, the numbers of lines and the signs of buttons.
  const drawn = (text) => text.split('\n').some((line) => !/^(Results|Structured Output|[0-9]{0,2}|⎘)$/.test(line.trim()));

  return {
    // connect connects to the only server, again if it fails.
    connect: () => {
      if (/^(Disconnected|Failed)$/m.test(document.body.innerText)) {
        control('Connect or disconnect')?.click();
      }
      return Boolean(control('Disconnect from server'));
    },
    has: (name) => Boolean(control(name)),
    click: (name) => {
      const found = control(name);
      found?.click();
      return Boolean(found);
    },
    // choose opens the form of a tool, in the place of the outcome of the last call.
    choose: (tool) => {
      const found = control(tool);
      closer()?.click();
      found?.click();
      return Boolean(found);
    },
    fill: (label, value) => {
      const field = labelled(label);
      if (field && field.ariaHasPopup === 'listbox' && field.value !== value) {
        const option = [...document.querySelectorAll('[role=option]')].find((element) => shown(element) && lines(element).includes(value));
        (option ?? field).click();
      } else if (field && field.value !== value) {
        type(field, value);
      }
      return field?.value === value;
    },
    // set turns a switch on or off.
    set: (label, on) => {
      const field = labelled(label);
      if (field && field.checked !== on) {
        field.click();
      }
      return field?.checked === on;
    },
    // asked reports whether a dialog with a title covers the page.
    asked: (title) => front() !== document.body && lines(front()).includes(title),
    // ended reports whether the call has ended and its outcome is drawn.
    ended: () => Boolean(closer()) && outcome().trim().includes('\n') && drawn(outcome()),
    outcome,
    // task is the ID of the only task.
    task: () => /^ID: (\S+)$/m.exec(document.body.innerText)?.[1] ?? '',
    shows: (pattern) => new RegExp(pattern, 'm').test(document.body.innerText),
    text: () => document.body.innerText,
    // tidy takes away the messages that cover a corner of the page, and the mark of the keyboard.
    tidy: () => {
      const messages = [...document.querySelectorAll('[class*=Notification-root]')];
      messages.forEach((message) => message.querySelector('button').click());
      document.activeElement.blur();
      return messages.length === 0;
    },
  };
})();
