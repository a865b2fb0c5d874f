// A row of buttons of which one is chosen, with the keys of radio buttons.
export class Choice {
  // options: [{value, label, title}]
  constructor(element, onChange) {
    this.element = element;
    this.onChange = onChange;
    this.value = null;
    element.addEventListener('keydown', (event) => {
      const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
      if (!step) return;
      event.preventDefault();
      const buttons = [...element.children], at = buttons.findIndex((b) => b.ariaChecked === 'true');
      const next = buttons[(at + step + buttons.length) % buttons.length];
      next.focus();
      next.click();
    });
  }

  set(options, value) {
    this.element.replaceChildren(...options.map(({value: v, label, title}) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.role = 'radio';
      button.dataset.value = v;
      button.textContent = label;
      if (title) button.title = title;
      button.addEventListener('click', () => {
        if (String(v) === String(this.value)) return;
        this.mark(v);
        this.onChange(v);
      });
      return button;
    }));
    this.mark(value);
  }

  mark(value) {
    this.value = value;
    for (const button of this.element.children) {
      const chosen = button.dataset.value === String(value);
      button.ariaChecked = String(chosen);
      button.tabIndex = chosen ? 0 : -1;
    }
  }
}
