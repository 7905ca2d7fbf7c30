// Ctrl-K or Cmd-K asks for a mirror, or a person of the mirror that is shown or of all.
'use strict';

const dialog = document.getElementById('jump');
const opener = document.querySelector('[data-jump]');
if (dialog && opener) {
  const field = dialog.querySelector('input');
  const list = dialog.querySelector('ul');
  let mirrors = [];

  const word = () => field.value.trim().toLowerCase();
  const show = () => {
    const found = mirrors.filter((name) => name.includes(word())).slice(0, 8);
    const links = found.map((name) => {
      const item = document.createElement('li');
      const link = item.appendChild(document.createElement('a'));
      [link.href, link.textContent] = [`/m/${name}`, name];
      return item;
    });
    list.replaceChildren(...links);
  };
  const open = async () => {
    dialog.showModal();
    field.select();
    const answer = await fetch('/mirrors.json', { redirect: 'error' }).catch(() => undefined);
    if (answer?.ok) mirrors = await answer.json();
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
  dialog.querySelector('form').addEventListener('submit', (event) => {
    const begun = mirrors.filter((name) => name.startsWith(word()));
    const mirror = mirrors.includes(word()) ? word() : begun.length === 1 && begun[0];
    if (!mirror) return;
    event.preventDefault();
    location.href = `/m/${mirror}`;
  });
}
