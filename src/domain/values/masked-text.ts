/** The maximum number of characters that a form shows. */
export const formLength = 20;

/**
 * Returns the form of a text, which is no personal data: a for letters, 9 for digits. Of a text
 * with an @, nothing more is shown.
 */
export function formOf(text: string): string {
  if (text.includes('@')) return 'a…@…';
  const form = text
    .replaceAll(/[\p{L}\p{M}]/gu, 'a')
    .replaceAll(/\p{N}/gu, '9')
    .replaceAll(/[^a9\x20-\x7e]/g, '?');
  return form.length > formLength ? `${form.slice(0, formLength)}…` : form;
}
