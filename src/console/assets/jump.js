// Ctrl-K or Cmd-K asks for a mirror, a page, or a person of the mirror that is shown or of all.
'use strict';

const dialog = document.getElementById('jump');
const opener = document.querySelector('[data-jump]');
if (dialog && opener) {
  const field = dialog.querySelector('input');
  const list = dialog.querySelector('ul');
  const pages = [...document.querySelectorAll('nav li > a')].map(({ href, firstChild }) => {
    return { name: firstChild.textContent.trim(), href };
  });
  let places = pages;

  const word = () => field.value.trim().toLowerCase();
  const nameOf = ({ name }) => name.toLowerCase();
  const show = () => {
    const found = places.filter((place) => nameOf(place).includes(word())).slice(0, 16);
    const links = found.map(({ name, href }) => {
      const item = document.createElement('li');
      const link = item.appendChild(document.createElement('a'));
      [link.href, link.textContent] = [href, name];
      return item;
    });
    list.replaceChildren(...links);
  };
  const open = async () => {
    dialog.showModal();
    field.select();
    const answer = await fetch('/mirrors.json', { redirect: 'error' }).catch(() => undefined);
    const mirrors = answer?.ok ? await answer.json() : [];
    places = [...pages, ...mirrors.map((name) => ({ name, href: `/m/${name}` }))];
    show();
  };

  if (/Mac/.test(navigator.platform)) opener.querySelector('kbd').textContent = '⌘ K';
  opener.hidden = false;
  opener.addEventListener('click', open);
  field.addEventListener('input', show);
  document.addEventListener('keydown', (event) => {
    if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    if (!dialog.open) open();
  });
  dialog.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const stops = [field, ...list.querySelectorAll('a')];
    const at = stops.indexOf(document.activeElement) + step;
    stops[(at + stops.length) % stops.length].focus();
  });
  dialog.querySelector('form').addEventListener('submit', (event) => {
    if (event.submitter?.hasAttribute('formaction')) return;
    const begun = places.filter((place) => nameOf(place).startsWith(word()));
    const [place = begun.length === 1 && begun[0]] = begun.filter((one) => nameOf(one) === word());
    if (!place) return;
    event.preventDefault();
    location.href = place.href;
  });
}
