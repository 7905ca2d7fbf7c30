import { readFile, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Invalid } from '../../src/domain/errors.ts';
import type { XlsxOptions } from '../../src/sources/xlsx/options.ts';
import { playsAll } from '../support/extent.ts';
import {
  openXlsx,
  readXlsx,
  rowsUnder,
  SHEET,
  sheetOf,
  workbook,
} from '../support/sources/workbook.ts';
import { errorOf, readAll, scratch, write } from '../support/sources/source-reading.ts';

const folder = await scratch();
const path = join(folder, 'people.xlsx');
const contacts = join(import.meta.dirname, '../e2e/first-contact/xlsx/contacts.xlsx');
const MIB = 1024 * 1024;
const open = (options: Partial<XlsxOptions> = {}) => openXlsx(path, options);
const read = (content: Buffer) => readXlsx(path, content);

async function refusal(content: Buffer, options: Partial<XlsxOptions> = {}) {
  await write(path, content);
  const error = await errorOf(readAll(open(options), ['id']));
  expect(error.name).toBe('Invalid');
  expect(error.message.startsWith(`${path}: `)).toBe(true);
  return error.message.slice(path.length + 2);
}

describe('a sheet', () => {
  test('that is not there is refused, with the names of the others', async () => {
    expect(await refusal(workbook(), { sheet: 'contacts' })).toBe(
      'there is no sheet "contacts"; sheets found: "Contacts", "Old"' +
        ' → did you mean "Contacts" for "contacts"?; correct sheet in the source',
    );
  });

  test('has columns, of which those that are asked for must be there once', async () => {
    await write(path, workbook());
    const error = await errorOf(readAll(open(), ['Mail', 'Email']));
    expect(error.message).toContain(
      `${path}: sheet "Contacts": there is no column "Mail"; columns`,
    );
    expect(error.message).toContain('did you mean "Email" for "Mail"?');
  });

  test('needs a row with more than one cell', async () => {
    const rows = '<row r="3"><c t="str"><v>A title</v></c><c s="1"/><c t="str"><v> </v></c></row>';
    expect(await refusal(workbook({ [SHEET]: sheetOf(rows) }))).toContain(
      'sheet "Contacts" has no row with more than one cell → name another sheet',
    );
  });
});

describe('a row that cannot be read', () => {
  test.each([
    ['holds a formula without a computed result', '<c r="B4"><f>NOW()</f><v/></c>'],
    ['refers to a text that the workbook does not have', '<c r="B4" t="s"><v>9999</v></c>'],
    ['holds a field above 1 MiB', `<c r="B4" t="str"><v>${'x'.repeat(MIB + 1)}</v></c>`],
    ['holds a NUL byte', '<c r="B4" t="str"><v>_x0000_</v></c>'],
  ])('%s, and only spoils the certificate', async (reason, cell) => {
    const { values, broken, certificate } = await readXlsx(
      path,
      rowsUnder(`<row r="4"><c r="A4"><v>1</v></c>${cell}</row><row><c><v>2</v></c></row>`),
      { fields: ['x'] },
    );
    expect(values).toEqual([{ id: '2', x: '' }]);
    expect(broken).toEqual([{ where: 'row 4', broken: reason, fix: expect.any(String) }]);
    expect(certificate).toMatchObject({
      complete: false,
      why: '1 row cannot be read, the first at row 4',
    });
  });

  test('is one with a formula of a program that does not compute', async () => {
    const edit = (xml: string) => xml.replace('</sheets>', '$&<calcPr fullCalcOnLoad="1"/>');
    const row = '<row><c><f>A1</f><v>0</v></c><c><v>2</v></c></row>';
    const { broken } = await read(rowsUnder(row, { 'xl/workbook.xml': edit }));
    expect(broken).toMatchObject([{ broken: 'holds a formula without a computed result' }]);
  });

  test.each([
    [['id'], [{ id: '1' }]],
    [[], []],
  ])('is not one with a fault in a field that was not asked for: %j', async (fields, expected) => {
    const row = '<row><c><v>1</v></c><c><f>NOW()</f></c></row>';
    const { values } = await readXlsx(path, rowsUnder(row), { fields });
    expect(values).toEqual(expected);
  });

  test('is not one with a fault beside the table', async () => {
    const cell = '<c r="C2"><f>NOW()</f></c>';
    const { values } = await read(rowsUnder(`<row><c><v>1</v></c><c/>${cell}</row>`));
    expect(values).toEqual([{ id: '1', x: '' }]);
  });
});

describe('a file that is refused', () => {
  const not = (why: string) => `${why} → save it as an Excel workbook (.xlsx)`;
  const locked =
    'this is an old .xls workbook or has a password → save it as .xlsx without a password';
  const old = Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.alloc(600)]);
  const rels = '_rels/.rels';
  const to = (part: string) => (xml: string) => xml.replace('xl/workbook.xml', part);
  test.each([
    ['is empty', Buffer.alloc(0), not('the file is empty')],
    ['is a CSV file', Buffer.from('id,email\n1,a@x.y\n'), not('this is not an Excel workbook')],
    ['is another zip', workbook({ [rels]: undefined }), not('this is not an Excel workbook')],
    ['is .xlsb', workbook({ [rels]: to('xl/book.bin') }), not('this is a binary workbook (.xlsb)')],
    [
      'has no sheet',
      workbook({ 'xl/workbook.xml': '<document/>' }),
      not('this is not a workbook with a sheet'),
    ],
    ['is an .xls or locked', old, locked],
  ])('%s', async (_, content, message) => {
    expect(await refusal(content)).toBe(message);
  });

  const fix = ' → open it in a spreadsheet program and save it again as .xlsx';
  test.each([
    ['is cut', workbook().subarray(0, -100), 'it is cut off, or a part of it cannot be unpacked'],
    ['lacks a part', workbook({ [SHEET]: undefined }), 'it has no "xl/worksheets/sheet1.xml"'],
    ['holds XML that is cut off', workbook({ 'xl/styles.xml': '<a>' }), '"xl/styles.xml" holds no'],
    [
      'nests its elements without end',
      workbook({ [SHEET]: '<a>'.repeat(1_000) }),
      '"xl/worksheets/sheet1.xml" nests its elements too deeply',
    ],
  ])('%s', async (_, content, why) => {
    const message = await refusal(content);
    expect(message).toContain(`the workbook is damaged: ${why}`);
    expect(message.endsWith(fix)).toBe(true);
  });

  test('has a password on a part', async () => {
    const content = workbook();
    // The flags of each entry of the directory.
    for (
      let at = content.indexOf('PK\x01\x02');
      at >= 0;
      at = content.indexOf('PK\x01\x02', at + 4)
    ) {
      content.writeUInt16LE(1, at + 8);
    }
    expect(await refusal(content)).toBe(locked);
  });

  test('is not there', async () => {
    await unlink(path);
    expect((await errorOf(readAll(open()))).message).toMatch(/there is no such file/);
  });
});

describe('a small file that unpacks to very much', () => {
  const spaces = ' '.repeat(40 * MIB);
  const long = `a="${' '.repeat(1_000)}"`;
  test.each([
    ['a shared string', { 'xl/sharedStrings.xml': `<sst><si><t>${spaces}</t></si></sst>` }],
    ['a part', { 'xl/styles.xml': `<styleSheet>${`<xf ${long}/>`.repeat(40_000)}</styleSheet>` }],
    ['a cell before the header', { [SHEET]: sheetOf(`<row><c><v>${spaces}</v></c></row>`) }],
    ['a row', { [SHEET]: sheetOf(`<row>${`<c ${long}/>`.repeat(40_000)}</row>`) }],
  ])('is refused for %s', async (_, edits) => {
    const content = workbook(edits);
    expect(content.length).toBeLessThan(MIB);
    expect(await refusal(content)).toContain('holds more than 32 MiB in one row, or 4 MiB in one');
  });

  test.runIf(playsAll)('is refused for all shared strings together', async () => {
    const many = '<si/>'.repeat(5_400_000);
    expect(await refusal(workbook({ 'xl/sharedStrings.xml': `<sst>${many}</sst>` }))).toContain(
      'holds texts of more than 256 MiB',
    );
  });
});

describe('a workbook with one damaged byte', () => {
  const places = playsAll ? 3_000 : 200;

  test('is refused, is not complete, or has the same rows', async () => {
    const whole = await readFile(contacts);
    const fields = ['Email'];
    const { records } = await readXlsx(path, whole, { fields });
    for (let part = 0; part < places; part += 1) {
      const content = Buffer.from(whole);
      const at = Math.floor((part * whole.length) / places);
      content.writeUInt8(content.readUInt8(at) ^ (1 << (part % 8)), at);
      const found = await readXlsx(path, content, { fields }).catch((error: unknown) => {
        if (error instanceof Invalid) return undefined;
        throw error;
      });
      if (found?.certificate.complete) expect([at, found.records]).toEqual([at, records]);
    }
  });
});
