/** Reads the first sheet of a workbook, as far as the one of this folder needs it. */
import { inflateRawSync } from 'node:zlib';
import type { TableRow } from './read-export.ts';

/** The rows of the first sheet that hold anything, with their numbers. A date is ISO 8601. */
export function sheetRows(workbook: Buffer): TableRow[] {
  const parts = workbookParts(workbook);
  const sheet = parts.get('xl/worksheets/sheet1.xml') ?? '';
  const strings = inner(parts.get('xl/sharedStrings.xml') ?? '', 'si').map(([, xml]) =>
    unescaped(
      inner(xml, 't')
        .map(([, text]) => text)
        .join(''),
    ),
  );
  return inner(sheet, 'row').map(([attributes, xml]) => {
    const cells: unknown[] = [];
    for (const [of, content] of inner(xml, 'c')) {
      const column = 'ABCDEFGH'.indexOf(attribute(of, 'r').charAt(0));
      const value = inner(content, 'v')[0]?.[1] ?? '';
      cells[column] = valueOf(
        value,
        { type: attribute(of, 't'), style: attribute(of, 's') },
        strings,
      );
    }
    return { line: Number(attribute(attributes, 'r')), cells };
  });
}

/** The files within a workbook, by their paths, as the directory at its end lists them. */
export function workbookParts(zip: Buffer): Map<string, string> {
  const end = zip.lastIndexOf('PK\x05\x06');
  const parts = new Map<string, string>();
  let at = zip.readUInt32LE(end + 16);
  for (let left = zip.readUInt16LE(end + 10); left > 0; left -= 1) {
    const [nameLength, extra] = [zip.readUInt16LE(at + 28), zip.readUInt16LE(at + 30)];
    const path = zip.toString('utf8', at + 46, at + 46 + nameLength);
    const local = zip.readUInt32LE(at + 42);
    const from = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
    const packed = zip.subarray(from, from + zip.readUInt32LE(at + 20));
    parts.set(path, inflateRawSync(packed).toString('utf8'));
    at += 46 + nameLength + extra + zip.readUInt16LE(at + 32);
  }
  return parts;
}

function valueOf(
  value: string,
  { type, style }: { type: string; style: string },
  strings: readonly string[],
): unknown {
  if (type === 's') return strings[Number(value)];
  if (type === 'b') return value === '1';
  if (type === 'str' || type === 'e') return unescaped(value);
  // The styles 1 and 2 of this workbook are dates.
  if (style !== '') return new Date((Number(value) - 25_569) * 86_400_000).toISOString();
  return Number(value);
}

/** Every element of a name: its attributes, and what stands in it. */
function inner(xml: string, name: string): [attributes: string, content: string][] {
  const element = new RegExp(`<${name}((?: [^>]*)?)>(.*?)</${name}>`, 'gs');
  return [...xml.matchAll(element)].map(([, attributes = '', content = '']) => [
    attributes,
    content,
  ]);
}

function attribute(attributes: string, name: string): string {
  return new RegExp(` ${name}="([^"]*)"`).exec(attributes)?.[1] ?? '';
}

function unescaped(xml: string): string {
  return xml.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
}
