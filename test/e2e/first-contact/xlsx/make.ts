/**
 * Makes contacts.xlsx as Excel writes it: `node test/e2e/first-contact/xlsx/make.ts`. A workbook is
 * a zip of XML files. Texts stand once in a table of shared strings, dates are days since the end
 * of 1899 with a format, and an empty cell is not there at all. The title over the table is one
 * merged cell, row 19 is empty, the last row holds a total, and a second sheet an older list.
 */
import { writeFileSync } from 'node:fs';
import { crc32, deflateRawSync } from 'node:zlib';

/** A value, a date, a text of which a part is bold, or a formula with its last value. */
type Cell = string | number | boolean | null | Dated | { bold: [string, string] } | Formula;
interface Dated {
  date: string;
}
interface Formula {
  type: 'b' | 'e' | 'n' | 'str';
  formula: string;
  value: string;
}

const date = (day: string): Cell => ({ date: day });
const found: Cell = { type: 'e', formula: 'VLOOKUP(A20,Old!A:D,4,FALSE)', value: '#N/A' };
const computed: Cell = { type: 'b', formula: 'TRUE()', value: '1' };
const computedText: Cell = { type: 'str', formula: 'IF(D16,"Yes","No")', value: 'Yes' };
const total: Cell = { type: 'n', formula: 'COUNTIF(D3:D38,TRUE)', value: '23' };

const title = ['Newsletter contacts, as of 31 March 2025'];
const header =
  'Contact no.|First name|Email|Newsletter|Product news|Unsubscribed on|Deleted on|Revenue';

const rows: readonly (readonly Cell[])[] = [
  [1001, 'Adam', 'adam@example.com', true, 'Yes', null, null, 120.5],
  [1002, 'Bea', 'bea@example.org', true, 'No', null, null, 80],
  [1003, 'Carl', 'carl@beispiel.example', false, 'No', null, null, 0],
  [1004, 'Dora', 'dora@example.com', true, null, null, null, 99.95],
  [1005, 'Elias', 'elias@example.org', null, 'Yes', null, null, 12],
  [1006, 'Flora', 'flora@beispiel.example', true, 'Yes', date('2024-05-17'), null, 45],
  [1007, 'Georg', 'georg@example.com', false, null, date('2023-11-02T14:30'), null, 45],
  [1008, 'Helga', 'helga@example.org', true, 'Yes', null, date('2024-12-31'), 1000],
  [1009, 'Ivo', 'ivo@beispiel.example', false, 'No', null, date('2025-01-06'), 0],
  [1010, 'Julia', 'Julia@Example.com', true, 'Yes', null, null, 11],
  [1011, 'Julia', 'julia@example.com', true, 'No', null, null, 11],
  ['1012', 'Kurt', '\u00a0kurt@example.org ', 'TRUE', ' yes ', null, null, 17.2],
  [1013, 'Lena', 'lena@beispiel.example', 1, 0, null, null, 3],
  [1014, 'Max', 'max@example.com', computed, computedText, null, null, 5],
  [1015, 'Nele', 'nele@example.org', true, 'Yes', '2025-01-15', null, 6],
  [1016, 'Oskar', 'oskar@beispiel.example', null, null, null, null, null],
  [],
  [1017, 'Pia', 'pia@example.com', found, 'Yes', null, null, 7],
  [1018, 'Ralph', 'ralph@example.org', 'n.a.', 'No', null, null, 8],
  [1019, 'Sina', 'sina@beispiel.example', true, 'maybe later', null, null, 9],
  [1020, 'Theo', 'theo@example.com', true, 'Yes', null, null, 10],
  [1020, 'Theo', 'theo@example.org', true, 'Yes', null, null, 10],
  [null, 'Uta', 'uta@beispiel.example', true, 'Yes', null, null, null],
  [1022, 'Viktor', null, true, 'Yes', null, null, 22],
  [1023, 'Wanda', 'wanda@example.com; wanda@example.org', true, 'Yes', null, null, 23],
  [1024, 'Xenia', 'mailto:xenia@example.org', true, 'No', null, null, 24],
  [1025, 'York', 'york@bücher.example', true, 'No', null, null, 25],
  [1026, 'Zita', { bold: ['zita@', 'example.com'] }, false, 'Yes', null, null, 26],
  [491512345678, 'Amy', 'amy@example.com', true, 'Yes', null, null, 27],
  [1028, 'Bob', 'bob@example.org', true, 'Yes', null, date('2025-02-03'), 28],
  [1029, 'Bob', 'BOB@example.org', true, 'No', null, null, 28],
  [1030, 'Cleo', 'cleo@example.com', 'not before May', 'No', date('2025-03-01'), null, 1],
  [1031, 'Dan', 'dan@example.org', true, 'No', null, null, 31],
  [1031, 'Dan', 'DAN@example.org', true, 'No', null, null, 31],
  [1033, 'Eve', 'eve@beispiel.example', -1, 'Yes', null, null, 33],
  [1034, 'Finn', 'finn@example.com', true, 'Yes', null, null, 34],
  ['Total', null, null, total, null, null, null, 2400],
];

const sheet = [title, header.split('|'), ...rows];
const old: readonly (readonly Cell[])[] = [
  ['Contact no.', 'First name', 'Email', 'Newsletter'],
  [1003, 'Carl', 'carl@beispiel.example', true],
  [901, 'Gus', 'gus@example.com', true],
];

const declaration = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\r\n';
const main = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main';
const office = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
const packaged = 'http://schemas.openxmlformats.org/package/2006';

const escape = (value: string): string =>
  value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const spaced = (value: string): string =>
  `<t${value.trim() === value ? '' : ' xml:space="preserve"'}>${escape(value)}</t>`;
/** Days since 30 December 1899, as Excel counts them from March 1900 on. */
const serial = (day: string): number =>
  (Date.parse(day.includes('T') ? `${day}Z` : day) - Date.UTC(1899, 11, 30)) / 86_400_000;

/** A sheet; each text gets its place in the list of shared strings. */
function sheetXml(table: readonly (readonly Cell[])[], strings: string[]): string {
  const share = (xml: string): number => {
    if (!strings.includes(xml)) strings.push(xml);
    return strings.indexOf(xml);
  };
  const cellXml = (cell: Cell, at: string): string => {
    if (cell === null) return '';
    if (typeof cell === 'number') return `<c r="${at}"><v>${cell}</v></c>`;
    if (typeof cell === 'boolean') return `<c r="${at}" t="b"><v>${cell ? 1 : 0}</v></c>`;
    if (typeof cell === 'string') return `<c r="${at}" t="s"><v>${share(spaced(cell))}</v></c>`;
    if ('date' in cell) {
      const style = cell.date.includes('T') ? 2 : 1;
      return `<c r="${at}" s="${style}"><v>${serial(cell.date)}</v></c>`;
    }
    if ('bold' in cell) {
      const [plain, bold] = cell.bold.map(spaced);
      const xml = `<r>${plain}</r><r><rPr><b/></rPr>${bold}</r>`;
      return `<c r="${at}" t="s"><v>${share(xml)}</v></c>`;
    }
    const type = cell.type === 'n' ? '' : ` t="${cell.type}"`;
    return `<c r="${at}"${type}><f>${escape(cell.formula)}</f><v>${cell.value}</v></c>`;
  };
  const rowsXml = table.map((cells, at) => {
    const xml = cells.map((cell, column) => cellXml(cell, `${'ABCDEFGH'[column]}${at + 1}`));
    return xml.length === 0 ? '' : `<row r="${at + 1}" spans="1:8">${xml.join('')}</row>`;
  });
  const merged =
    table[0] === title ? '<mergeCells count="1"><mergeCell ref="A1:H1"/></mergeCells>' : '';
  const data = `<dimension ref="A1:H${table.length}"/><sheetData>${rowsXml.join('')}</sheetData>`;
  return `${declaration}<worksheet xmlns="${main}">${data}${merged}</worksheet>`;
}

const packageXml = (name: string, schema: string, xml: string): string =>
  `${declaration}<${name} xmlns="${packaged}/${schema}">${xml}</${name}>`;
const relationsXml = (xml: string): string => packageXml('Relationships', 'relationships', xml);
const mainXml = (name: string, xml: string, more = ''): string =>
  `${declaration}<${name} xmlns="${main}"${more}>${xml}</${name}>`;
const relation = (type: string, target: string, at: number): string =>
  `<Relationship Id="rId${at}" Type="${office}/${type}" Target="${target}"/>`;

const styles = `
<numFmts count="1"><numFmt numFmtId="164" formatCode="dd/mm/yyyy\\ hh:mm"/></numFmts>
<fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts>
<fills count="1"><fill><patternFill patternType="none"/></fill></fills>
<borders count="1"><border/></borders><cellStyleXfs count="1"><xf numFmtId="0"/></cellStyleXfs>
<cellXfs count="3"><xf numFmtId="0"/><xf numFmtId="14" applyNumberFormat="1"/>
<xf numFmtId="164" applyNumberFormat="1"/></cellXfs>`;

/** The files within the workbook, by their paths. */
export function makeParts(): Map<string, string> {
  const strings: string[] = [];
  const sheets = [sheetXml(sheet, strings), sheetXml(old, strings)];
  const names = ['worksheets/sheet1', 'worksheets/sheet2', 'styles', 'sharedStrings'];
  const types = ['worksheet', 'worksheet', 'styles', 'sharedStrings'];
  const kind = 'application/vnd.openxmlformats';
  const content = `${kind}-officedocument.spreadsheetml`;
  const part = (name: string, type: string) =>
    `<Override PartName="/xl/${name}.xml" ContentType="${content}.${type}+xml"/>`;
  const overrides = [
    part('workbook', 'sheet.main'),
    ...names.map((name, at) => part(name, types[at] ?? '')),
  ];
  const rels = `<Default Extension="rels" ContentType="${kind}-package.relationships+xml"/>`;
  const plain = '<Default Extension="xml" ContentType="application/xml"/>';
  const tabs = ['Contacts', 'Old'].map(
    (name, at) => `<sheet name="${name}" sheetId="${at + 1}" r:id="rId${at + 1}"/>`,
  );
  const items = strings.map((xml) => `<si>${xml}</si>`).join('');
  const targets = names.map((name, at) => relation(types[at] ?? '', `${name}.xml`, at + 1));
  return new Map([
    [
      '[Content_Types].xml',
      packageXml('Types', 'content-types', [rels, plain, ...overrides].join('')),
    ],
    ['_rels/.rels', relationsXml(relation('officeDocument', 'xl/workbook.xml', 1))],
    [
      'xl/workbook.xml',
      mainXml('workbook', `<sheets>${tabs.join('')}</sheets>`, ` xmlns:r="${office}"`),
    ],
    ['xl/_rels/workbook.xml.rels', relationsXml(targets.join(''))],
    ['xl/worksheets/sheet1.xml', sheets[0] ?? ''],
    ['xl/worksheets/sheet2.xml', sheets[1] ?? ''],
    ['xl/styles.xml', mainXml('styleSheet', styles)],
    ['xl/sharedStrings.xml', mainXml('sst', items, ` uniqueCount="${strings.length}"`)],
  ]);
}

/** The fields of a zip's headers that Excel always writes alike: version, method, year 1980. */
const fixed = [20, 0, 8, 0, 33];

/** The parts as a file that Excel opens. */
export function zip(parts: ReadonlyMap<string, string | Buffer>): Buffer {
  const locals: Buffer[] = [];
  const entries: Buffer[] = [];
  let offset = 0;
  for (const [path, xml] of parts) {
    const packed = deflateRawSync(xml);
    const sizes = Buffer.alloc(16);
    sizes.writeUInt32LE(crc32(xml), 0);
    sizes.writeUInt32LE(packed.length, 4);
    sizes.writeUInt32LE(Buffer.byteLength(xml), 8);
    sizes.writeUInt16LE(path.length, 12);
    const head = Buffer.concat([shorts(fixed), sizes]);
    const [local, entry] = [
      [0x4b50, 0x0403],
      [0x4b50, 0x0201, 20],
    ].map(shorts);
    const place = Buffer.alloc(14);
    place.writeUInt32LE(offset, 10);
    locals.push(Buffer.concat([local ?? head, head, Buffer.from(path), packed]));
    entries.push(Buffer.concat([entry ?? head, head, place, Buffer.from(path)]));
    offset += locals.at(-1)?.length ?? 0;
  }
  const directory = Buffer.concat(entries);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06');
  end.writeUInt16LE(parts.size, 8);
  end.writeUInt16LE(parts.size, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...locals, directory, end]);
}

function shorts(values: readonly number[]): Buffer {
  return Buffer.from(Uint16Array.from(values).buffer);
}

if (process.argv[1] === import.meta.filename) {
  writeFileSync(new URL('contacts.xlsx', import.meta.url), zip(makeParts()));
}
