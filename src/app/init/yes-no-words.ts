/** Words for yes, no and none in many languages, as the columns of an export hold them. */

/** Words for yes and no in other languages. They are proposed where a column holds them. */
export const yesWords =
  'ja oui sí si sì sim tak wahr vrai vero verdadero waar ano áno igen kyllä evet da да так ναι はい 是 예'.split(
    ' ',
  );
export const noWords =
  'nein non não nao nee nej nei nie falsch faux falso onwaar ne nem ei hayır nu нет ні όχι いいえ 否 아니요'.split(
    ' ',
  );

/** Single letters and marks for yes, which are only proposed: another may mean something else. */
export const yesMarks = 'j o s x ✓ ✔ ☑'.split(' ');

const none = ['null', 'nil', 'none', 'nan', 'n/?a', 'undefined', 'nv', 'not set', 'empty', 'leer'];
const marker = new RegExp(String.raw`^(?:\W*(?:${none.join('|')})\W*|\\n|-+|\?+)$`, 'i');

/** Returns whether a value stands for none: `NULL`, `n/a`. */
export function isMarker(text: string): boolean {
  return marker.test(text);
}
