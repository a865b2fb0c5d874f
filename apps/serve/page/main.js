// The page: the model's name, the theme, errors, and the two parts, talking and looking inside.
import {getJson, postJson, useKey} from './api.js';
import {forgetPalette} from './colors.js';
import {Inside} from './inside.js';
import {Talk} from './talk.js';

const $ = (id) => document.getElementById(id);

function showError(error) {
  if (error.status === 401) {
    $('key-form').hidden = false;
    $('key').focus();
    return;
  }
  $('error').textContent = error.message;
  $('error').hidden = false;
  clearTimeout(showError.waiting);
  showError.waiting = setTimeout(() => { $('error').hidden = true; }, 8000);
}

const themes = ['auto', 'light', 'dark'];
function setTheme(name, inside) {
  if (name === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  localStorage.setItem('braid-theme', name);
  $('theme').lastElementChild.textContent = name;
  $('theme').setAttribute('aria-label', `Colors: ${name === 'auto' ? 'as the system' : name}`);
  forgetPalette();
  inside?.redraw();
}

async function begin() {
  setTheme(themes.includes(localStorage.getItem('braid-theme')) ? localStorage.getItem('braid-theme') : 'auto');
  let model;
  try {
    model = (await getJson('/v1/models')).data[0];
  } catch (error) {
    $('model').textContent = '';
    return showError(error);
  }
  $('model').textContent = model.id;
  document.title = `${model.id} · Braid`;
  const talk = new Talk(model, showError);
  const inside = new Inside((text) => postJson('/tokenize', {prompt: text}), showError);
  $('theme').onclick = () => {
    const now = localStorage.getItem('braid-theme');
    setTheme(themes[(themes.indexOf(now) + 1) % themes.length], inside);
  };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    forgetPalette();
    inside.redraw();
  });
  $('take-text').addEventListener('click', () => {
    if (!talk.text()) return showError(new Error('There is no text above yet: talk to the model first.'));
    $('look').value = talk.text();
    inside.look(talk.text());
  });
  await inside.look($('look').value);
}

$('key-form').addEventListener('submit', (event) => {
  event.preventDefault();
  useKey($('key').value);
  $('key-form').hidden = true;
  begin();
});
begin();
