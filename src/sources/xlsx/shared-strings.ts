/** Reads the texts of a workbook, to which its cells refer by number (sharedStrings.xml). */
import { unescaped } from './cell-value.ts';
import { XmlFault, type XmlReader } from './xml-stream.ts';

/** The maximum memory for all texts. */
const MOST_BYTES = 256 * 1024 * 1024;
/** The approximate memory for a text in addition to its letters. */
const TEXT_BYTES = 50;

/** Joins the parts of a formatted text. Pronunciation hints are left out. */
export function richText() {
  let [isText, isPhonetic, text] = [false, false, ''];
  return {
    opened(name: string) {
      if (name === 't') isText = true;
      if (name === 'rPh') isPhonetic = true;
    },
    closed(name: string) {
      if (name === 't') isText = false;
      if (name === 'rPh') isPhonetic = false;
    },
    text(found: string) {
      if (isText && !isPhonetic) text += found;
    },
    /** Returns the text and resets it. */
    take() {
      const taken = text;
      text = '';
      return taken;
    },
  };
}

/** Reads sharedStrings.xml. */
export function stringReader(): XmlReader & { strings: string[] } {
  const strings: string[] = [];
  const rich = richText();
  let bytes = 0;
  return {
    strings,
    opened: rich.opened,
    text: rich.text,
    closed(name) {
      rich.closed(name);
      if (name !== 'si') return false;
      const text = compact(unescaped(rich.take()));
      bytes += text.length + TEXT_BYTES;
      if (bytes > MOST_BYTES) throw new XmlFault('holds texts of more than 256 MiB');
      strings.push(text);
      return true;
    },
  };
}

/** Copies a text, so that the chunk from which it was cut can be released. */
function compact(text: string): string {
  return Buffer.from(text).toString();
}
