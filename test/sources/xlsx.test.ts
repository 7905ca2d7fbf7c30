import { appendFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  type Edits,
  header,
  openXlsx,
  readXlsx,
  rowsUnder,
  SHEET,
  sheetOf,
  workbook,
} from '../support/sources/workbook.ts';
import { errorOf, readAll, scratch, write, WRITTEN } from '../support/sources/source-reading.ts';

const folder = await scratch();
const path = join(folder, 'people.xlsx');
const contacts = join(import.meta.dirname, '../e2e/first-contact/xlsx/contacts.xlsx');
const open = () => openXlsx(path);
const read = (content: Buffer, options: Parameters<typeof readXlsx>[2] = {}) =>
  readXlsx(path, content, options);

/** The values of column x, of one row for each cell. */
async function valuesOf(cells: readonly string[], edits: Edits = {}) {
  const rows = cells.map((cell) => `<row><c t="n"><v>1</v></c>${cell}</row>`);
  const { values } = await read(rowsUnder(rows.join(''), edits));
  return values.map((value) => value['x']);
}

describe('a sheet', () => {
  test('is chosen by its name', async () => {
    const { values } = await read(await readFile(contacts), { sheet: 'Old', fields: ['Email'] });
    expect(values.map((value) => value['Email'])).toEqual([
      'carl@beispiel.example',
      'gus@example.com',
    ]);
  });

  test('is the first one that is not hidden, if none is named', async () => {
    const hidden = (xml: string) => xml.replace('name="Contacts"', '$& state="hidden"');
    const { values } = await read(workbook({ 'xl/workbook.xml': hidden }), { fields: ['Email'] });
    expect(values).toHaveLength(2);
  });

  test('lies where the workbook says', async () => {
    const { values } = await read(
      workbook({
        'xl/_rels/workbook.xml.rels': (xml) =>
          xml.replace('"worksheets/sheet1.xml"', '"/other/Sheet.xml"'),
        'other/sheet.xml': sheetOf(`${header}<row><c><v>7</v></c></row>`),
      }),
    );
    expect(values).toEqual([{ id: '7', x: '' }]);
  });

  test('may be written with prefixes and without places', async () => {
    const rows = '<x:row><x:c><x:v>1</x:v></x:c><x:c t="b"><x:v>1</x:v></x:c></x:row>';
    const names = header.replaceAll('<', '<x:').replaceAll('<x:/', '</x:');
    const data = `<x:sheetData>${names}${rows}</x:sheetData>`;
    const { records } = await read(
      workbook({ [SHEET]: `<x:worksheet xmlns:x="urn:x">${data}</x:worksheet>` }),
    );
    expect(records).toEqual([{ where: 'row 2', value: { id: '1', x: 'true' } }]);
  });

  test('knows elements, attributes and references by their namespace', async () => {
    const other = 'xmlns:o="urn:other"';
    const ext = (xml: string) => `<extLst><ext ${other}>${xml}</ext></extLst>`;
    const workbookEnd = `<calcPr/>${ext('<o:workbookPr/><o:calcPr fullCalcOnLoad="1"/>')}</workbook>`;
    const cells = `<c s="0"><v>43967</v>${ext('<o:v>5</o:v><o:f/><o:c/>')}</c>`;
    const { values } = await read(
      rowsUnder(
        `<row><c t="str"><v>1</v></c>${cells}</row>${ext('<o:row><o:c><o:v>9</o:v></o:c></o:row>')}`,
        {
          'xl/workbook.xml': (xml) =>
            xml
              .replace('<sheets>', '<workbookPr date1904="1"/>$&')
              .replace('<sheet ', `<sheet ${other} o:id="rId99" `)
              .replace('</workbook>', workbookEnd),
          'xl/_rels/workbook.xml.rels': (xml) =>
            xml.replace(
              /<Relationship /,
              '<Relationship Id="o" Type="urn:other/styles" Target="other.xml"/>$&',
            ),
          'xl/styles.xml':
            `<styleSheet ${other}><cellXfs><o:xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>` +
            '</styleSheet>',
        },
      ),
    );
    expect(values).toEqual([{ id: '1', x: '2024-05-17' }]);
  });

  describe('with two header rows', () => {
    const row = (number: number, ...cells: string[]) =>
      `<row r="${number}">${cells.map((cell) => `<c t="str"><v>${cell}</v></c>`).join('')}</row>`;
    const rows =
      row(1, 'Person', '', 'Consent') + row(3, 'id', 'Email', 'News') + row(4, '1', 'a', 'x');
    const content = workbook({ [SHEET]: sheetOf(rows) });

    test('has its column names in the row that headerRow names', async () => {
      const { records } = await read(content, { headerRow: 3 });
      expect(records).toEqual([{ where: 'row 4', value: { id: '1', Email: 'a', News: 'x' } }]);
      for (const headerRow of [2, 9]) {
        const { message } = await errorOf(read(content, { headerRow }));
        expect(message).toContain(`headerRow is ${headerRow}, and that row is empty or not there`);
      }
    });

    test('takes the name of a column from above where the cells are merged', async () => {
      const merged = row(1, 'Title') + row(2, 'id', '', 'Consent') + row(3, '', 'Email', 'News');
      const people = row(4, '1', 'a', 'x');
      const edited = workbook({ [SHEET]: sheetOf(merged + people) });
      const { values } = await read(edited, { headerRow: 3 });
      expect(values).toEqual([{ id: '1', Email: 'a', News: 'x' }]);
    });

    test('proposes headerRow where a row below has the missing names', async () => {
      expect((await errorOf(read(content, { fields: ['id', 'News'] }))).message).toContain(
        'there are no columns "id", "News" in the header row, but row 3 has them; set headerRow: 3',
      );
    });
  });

  test('may be in UTF-16, as any XML', async () => {
    const xml = `\ufeff<worksheet><sheetData>${header}<row><c t="str"><v>é</v></c></row></sheetData></worksheet>`;
    const utf16 = Buffer.from(xml, 'utf16le');
    for (const content of [utf16, Buffer.from(utf16).swap16()]) {
      expect((await read(workbook({ [SHEET]: content }))).values).toEqual([{ id: 'é', x: '' }]);
    }
  });

  test('may be in the strict form of the format', async () => {
    const strict = (xml: string) =>
      xml
        .replaceAll(
          'schemas.openxmlformats.org/officeDocument/2006',
          'purl.oclc.org/ooxml/officeDocument',
        )
        .replaceAll(
          'schemas.openxmlformats.org/spreadsheetml/2006',
          'purl.oclc.org/ooxml/spreadsheetml',
        );
    const parts = ['_rels/.rels', 'xl/workbook.xml', 'xl/_rels/workbook.xml.rels', SHEET];
    const edits = Object.fromEntries(parts.map((part) => [part, strict]));
    expect((await read(workbook(edits), { fields: ['Email'] })).values).toHaveLength(36);
  });

  test('is read in batches, and characters may cross its chunks', async () => {
    const name = 'é😀'.repeat(50);
    const row = (_: unknown, at: number) =>
      `<row><c><v>${at}</v></c><c t="inlineStr"><is><t>${name}</t></is></c></row>`;
    const { batches, values } = await read(rowsUnder(Array.from({ length: 1_200 }, row).join('')));
    expect(batches.map((batch) => batch.length)).toEqual([500, 500, 200]);
    expect(new Set(values.map((value) => value['x']))).toEqual(new Set([name]));
  });
});

test('a cell to the right of the header is in a column without a name', async () => {
  const cell = '<c t="n"><v>1</v></c>';
  const rows = [cell + cell, cell.repeat(4), cell].map((cells) => `<row>${cells}</row>`).join('');
  for (const fields of [[], ['id', 'unnamed (2)']]) {
    const { values } = await read(rowsUnder(rows), { fields });
    expect(values.map((value) => value['unnamed (2)'] || '')).toEqual(['', '1', '']);
  }
});

describe('a merged range', () => {
  /** Rows as a table: `x` is a text, `.` an empty cell, `_` none. */
  const tableOf = (...rows: string[]) =>
    rows.map((row, at) => {
      const cells = row.split(' ').map((cell, column) => {
        const place = `r="${'ABCDEF'.charAt(column)}${at + 1}"`;
        if (cell === '_') return '';
        return cell === '.' ? `<c ${place} s="1"/>` : `<c ${place} t="str"><v>${cell}</v></c>`;
      });
      return `<row r="${at + 1}">${cells.join('')}</row>`;
    });
  const merged = (rows: readonly string[], ...ranges: string[]) => {
    const cells = ranges.map((range) => `<mergeCell ref="${range}"/>`).join('');
    const after = `<mergeCells count="${ranges.length}">${cells}</mergeCells>`;
    return sheetOf(rows.join('')).replace('</sheetData>', `$&${after}`);
  };
  const readMerged = async (xml: string, encoding: 'utf8' | 'utf16le' = 'utf8') => {
    const sheet = Buffer.from(encoding === 'utf8' ? xml : `\ufeff${xml}`, encoding);
    const { values } = await read(workbook({ [SHEET]: sheet }));
    return values.map((value) => Object.values(value).join(' '));
  };

  test.each([
    [
      'down',
      ['id x y', '1 no a', '2 . b', '3 _ c', '4 . d'],
      ['B2:B4'],
      '1 no a|2 no b|3 no c|4  d',
    ],
    ['not across', ['id x y', '1 no .', '2 . .'], ['B2:C2'], '1 no |2  '],
    ['both', ['id x y', '1 no .', '2 . _', '3 . .'], ['B2:C3'], '1 no |2 no |3  '],
    [
      'two',
      ['id x y', '1 a .', '2 . .', '3 b c', '4 . .'],
      ['B2:B3', 'B4:C5'],
      '1 a |2 a |3 b c|4 b ',
    ],
    ['not over a value', ['id x', '1 yes', '2 no', '3 .'], ['B2:B4'], '1 yes|2 no|3 yes'],
    ['an empty first cell', ['id x', '1 .', '2 yes'], ['B2:B3'], '1 |2 yes'],
    ['a row without cells', ['id x', '1 no', '_', '3 .'], ['B2:B4'], '1 no|3 no'],
    ['a heading', ['id x y', 'Members . .', '1 no a'], ['A2:C2'], 'Members  |1 no a'],
    ['the header and a title', ['Title . .', 'id x y', '. b c'], ['A1:C1', 'A2:A3'], ' b c'],
    ['beyond the header', ['id x', '1 no', '2 .'], ['B2:XFD1048576'], '1 no|2 no'],
  ])('gives its value to empty cells below: %s', async (_, rows, ranges, expected) => {
    expect((await readMerged(merged(tableOf(...rows), ...ranges))).join('|')).toBe(expected);
  });

  test('is found in UTF-16, and where a chunk ends in its name', async () => {
    const range = '<mergeCell ref="B2:B3"/>';
    const xml = merged(tableOf('id x', '1 no', '2 .')).replace(/<mergeCells.*mergeCells>/, range);
    for (let length = 0; length < range.length; length += 1) {
      const note = 'n'.repeat(65_536 - xml.indexOf(range) - '<!---->'.length - length);
      expect(await readMerged(xml.replace(range, `<!--${note}-->${range}`))).toEqual([
        '1 no',
        '2 no',
      ]);
    }
    expect(await readMerged(xml, 'utf16le')).toEqual(['1 no', '2 no']);
  });

  test('is refused with more of its kind than fit into memory', async () => {
    const cell = '<mergeCell ref="A1:B2"/>';
    const xml = `<mergeCells>${cell.repeat(500_001)}</mergeCells></worksheet>`;
    const content = workbook({ [SHEET]: sheetOf(header).replace('</worksheet>', xml) });
    expect((await errorOf(read(content))).message).toContain(
      'holds more than 500,000 merged cells',
    );
  });
});

describe('a cell', () => {
  test.each([
    ['491512345678', '491512345678'],
    ['12345678901234567890', '12345678901234567890'],
    ['1.23456789012345E+16', '12345678901234500'],
    ['4.9151234567800001E+11', '491512345678'],
    ['0.30000000000000004', '0.3'],
    ['120.5', '120.5'],
    ['-1', '-1'],
    ['1001.0', '1001'],
    ['-0', '0'],
    ['', ''],
    ['what', 'what'],
  ])('with the number %s is %j', async (stored, text) => {
    expect(await valuesOf([`<c r="B2"><v>${stored}</v></c>`])).toEqual([text]);
  });

  test('is a text, a result of a formula, a word for yes or no, or an error', async () => {
    const cells = [
      '<c t="inlineStr"><is><r><t>a &amp;</t></r><r><t> b</t></r><rPh><t>c</t></rPh></is></c>',
      '<c t="str"><f>A1&amp;"x"</f><v>a_x000D_b_x005F_</v></c>',
      '<c t="str"><f>""</f><v></v></c>',
      '<c t="b"><v>1</v></c>',
      '<c t="b"><f>FALSE()</f><v>0</v></c>',
      '<c t="e"><v>#N/A</v></c>',
      '<c t="d"><v>2026-01-31</v></c>',
      '<c t="s"><v>0</v></c>',
      '<c t="str"><v><![CDATA[<a>]]></v></c>',
      '<c s="1"/>',
    ];
    const strings = '<sst><si><rPh><t>x</t></rPh><r><t>sha</t></r><r><t>red</t></r></si></sst>';
    expect(await valuesOf(cells, { 'xl/sharedStrings.xml': strings })).toEqual([
      'a & b',
      'a\rb_',
      '',
      'true',
      'false',
      '#N/A',
      '2026-01-31',
      'shared',
      '<a>',
      '',
    ]);
  });

  const formats = (codes: readonly string[]) => {
    const described = codes.map(
      (code, at) => `<numFmt numFmtId="${164 + at}" formatCode="${code}"/>`,
    );
    const xfs = codes.map((_, at) => `<xf numFmtId="${164 + at}"/>`).join('');
    return {
      'xl/styles.xml':
        `<styleSheet><numFmts>${described.join('')}</numFmts><cellStyleXfs><xf numFmtId="0"/>` +
        `</cellStyleXfs><cellXfs>${xfs}<xf numFmtId="22"/><xf numFmtId="45"/></cellXfs></styleSheet>`,
    };
  };
  const dated = (days: number, style: number) => `<c s="${style}"><v>${days}</v></c>`;

  test.each([
    ['yyyy\\-mm\\-dd', 45_429, '2024-05-17'],
    ['[$-407]d. mmm yyyy;@', 45_429.999_999, '2024-05-17T23:59:59.914'],
    ['dd/mm/yyyy\\ hh:mm', 45_232.604_166_666_664, '2023-11-02T14:30:00'],
    ['mmm', 45_429, '2024-05-17'],
    ['h:mm AM/PM', 0.75, '18:00:00'],
    ['h:mm', 45_429.75, '2024-05-17T18:00:00'],
    ['[h]:mm', 45_429, '45429'],
    ['0 &quot;days&quot;', 45_429, '45429'],
    ['[Red]0.00;\\d', 45_429, '45429'],
    ['#,##0\\ [$EUR/d]', 45_429, '45429'],
    ['General', 45_429, '45429'],
    ['yyyy', 1, '1900-01-01'],
    ['yyyy', 59, '1900-02-28'],
    ['yyyy', 60, '1900-02-29'],
    ['yyyy', 61, '1900-03-01'],
    ['yyyy', 0, '1900-01-00'],
    ['yyyy', -1, '-1'],
    ['yyyy', 2_958_465, '9999-12-31'],
    ['yyyy', 2_958_466, '2958466'],
  ])('with the format %s and the number %s is %s', async (code, days, text) => {
    expect(await valuesOf([dated(days, 0)], formats([code]))).toEqual([text]);
  });

  test('may have a format that no file describes', async () => {
    const cells = [dated(45_429.5, 1), dated(0.5, 2), dated(45_429, 9)];
    expect(await valuesOf(cells, formats(['0']))).toEqual([
      '2024-05-17T12:00:00',
      '12:00:00',
      '45429',
    ]);
  });

  test.each(['1', 'true'])('counts its days from 1904 where the workbook does (%s)', async (is) => {
    const edit = (xml: string) => xml.replace('<sheets>', `<workbookPr date1904="${is}"/><sheets>`);
    const edits = { ...formats(['yyyy']), 'xl/workbook.xml': edit };
    expect(await valuesOf([dated(0, 0), dated(43_967, 0)], edits)).toEqual([
      '1904-01-01',
      '2024-05-17',
    ]);
  });
});

describe('the certificate', () => {
  const many = rowsUnder('<row><c><v>1</v></c></row>'.repeat(20_000));

  test('names the reading by size and time, and is the same until the file changes', async () => {
    await write(path, workbook());
    const source = open();
    const { certificate } = await readAll(source, ['Email']);
    const { reading } = certificate;
    expect(reading).toBe(`${workbook().length}-${WRITTEN}`);
    expect(source.still?.(reading)).toBe(true);
    await write(path, workbook(), WRITTEN + 1);
    expect(source.still?.(reading)).toBe(false);
  });

  test('is not given when the file changes meanwhile', async () => {
    await write(path, many);
    const reading = open().read({ fields: ['id'], signal: new AbortController().signal });
    await reading.next();
    await appendFile(path, 'x');
    let step = await reading.next();
    while (!step.done) step = await reading.next();
    expect(step.value).toMatchObject({
      complete: false,
      why: 'the file changed while it was read',
    });
  });

  const brokenOff = [
    ['does not end', sheetOf(header).slice(0, -14), 'holds no well-formed XML'],
    ['is not UTF-8', undefined, 'is not what was stored'],
  ] as const;
  test.each(brokenOff)(
    'is not given when the sheet %s, and what was read counts',
    async (kind, xml, why) => {
      const rows = '<row><c><v>1</v></c></row>'.repeat(600);
      const content =
        xml === undefined
          ? rowsUnder(rows)
          : workbook({ [SHEET]: sheetOf(header + rows).slice(0, -14) });
      if (kind === 'is not UTF-8') spoilSum(content);
      const { values, certificate } = await read(content);
      expect(values).toHaveLength(600);
      expect(certificate).toMatchObject({
        complete: false,
        why: expect.stringMatching(`^reading stopped at row 601: .*${why}$`),
        fix: expect.stringContaining('save it again'),
      });
    },
  );

  /** Changes the sum of the sheet in the directory. */
  function spoilSum(content: Buffer): void {
    const at = content.lastIndexOf(SHEET) - 46 + 16;
    content.writeUInt32LE((content.readUInt32LE(at) ^ 1) >>> 0, at);
  }

  test('is not reached by a reading that is stopped', async () => {
    await writeFile(path, many);
    const stop = new AbortController();
    const reading = open().read({ fields: ['id'], signal: stop.signal });
    await reading.next();
    const reason = new Error('stop');
    stop.abort(reason);
    const drain = async () => {
      while (!(await reading.next()).done);
    };
    await expect(drain()).rejects.toBe(reason);
  });
});
