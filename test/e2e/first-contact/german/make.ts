/**
 * Makes the export of a German CRM: `node test/e2e/first-contact/german/make.ts > kunden.csv`.
 * Everybody in it is invented, and every run writes the same bytes. 4,928 plain people come from a
 * seeded generator; between them stand the rows that make real exports hard, one of them every few
 * dozen lines: 60 duplicates, 30 rows without an address, 5 empty ones, a blank line, and 42 more.
 */
const columns =
  'Kundennr.;Vorname;E-Mail;PLZ;Ort;Newsletter;Produktinfos;Abgemeldet am;Gelöscht;Geändert am';

type Row = Partial<Record<Field, string>>;
type Field = 'id' | 'name' | 'email' | 'place' | 'news' | 'product' | 'left' | 'deleted';

const names =
  'Anna Bernd Carla Dirk Emil Frieda Gerd Hanna Ida Jan Käthe Lars Mia Nora Otto Paula Rosa Sören';
const places = ['Köln', 'München', 'Berlin', 'Görlitz', '"Frankfurt; Main"', 'Weißenfels'];
const domains = ['example.com', 'example.org', 'beispiel.example'];
const news = 'Ja Ja Ja Ja Ja Ja Ja Ja JA Nein Nein Nein Nein nein unbekannt unbekannt - - -';
const product = 'Ja Ja Ja Ja Nein Nein Nein Nein NEIN - - - -';

/** Numbers from 0 to below 1, the same ones for the same seed. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const random = generator(20_250_331);
const pick = (list: string | readonly string[]): string => {
  const choices = typeof list === 'string' ? list.split(' ') : list;
  const choice = choices[Math.floor(random() * choices.length)] ?? '';
  return choice === '-' ? '' : choice;
};
const two = (most: number) => String(1 + Math.floor(random() * most)).padStart(2, '0');
const date = () => `${two(28)}.${two(12)}.20${pick('19 20 21 22 23 24')}`;

function person(number: number): Record<Field, string> {
  const name = pick(names);
  const ascii = name.normalize('NFD').replaceAll(/[^A-Za-z]/g, '');
  const email = `${ascii}.${number}@${pick(domains)}`;
  return {
    id: String(100_000 + number),
    name,
    email: random() < 0.1 ? email.toUpperCase() : email.toLowerCase(),
    place: pick(places),
    news: pick(news),
    product: pick(product),
    left: random() < 0.03 ? pick([date(), `${date()} ${two(23)}:${two(59)}`]) : '',
    deleted: random() < 0.03 ? 'Ja' : pick('Nein Nein Nein -'),
  };
}

const plain = Array.from({ length: 4928 }, (_, at) => person(at + 1));

/** A record of its own for somebody, who says Ja to both unless the row says otherwise. */
const own = (row: Row): Row => ({ news: 'Ja', product: 'Ja', deleted: 'Nein', ...row });
/** The numbers of the rows that are no plain people; the CRM counts on. */
const numbered = (rows: readonly Row[], from: number): Row[] =>
  rows.map((row, at) => own({ id: String(from + at), ...row }));

/** Words and addresses that a guess would take for something else. */
const odd = numbered(
  [
    { name: 'Petra', email: 'petra@bücher.example' },
    { name: 'Nora', email: '\u00a0nora@beispiel.example\u00a0', product: 'Ja\u00a0' },
    { name: 'Karl', email: 'karl@beispiel.example', place: '"Hof ""Linde""\r\nBad Aibling"' },
    { name: 'Lea', email: 'lea@beispiel.example', left: '0000-00-00', product: '' },
    { name: 'Anna', email: 'anna@example.com, anna@example.org' },
    { name: 'Bernd', email: '"bernd@example.com; bernd@example.org"' },
    { name: 'Carla', email: 'Carla <carla@example.com>' },
    { name: 'Dirk', email: 'mailto:dirk@example.com' },
    { name: 'Emil', email: 'emil@example.com,' },
    { name: 'Frieda', email: 'frieda@example.com.' },
    { name: 'Gerd', email: 'gerd@example' },
    { name: 'Hanna', email: 'hanna @example.com' },
    { name: 'Ida', email: 'ida(at)example.com', news: 'Nein' },
    { name: 'Jan', email: 'jan@beispiel.example', news: 'Ja, gerne' },
    { name: 'Käthe', email: 'kaethe@beispiel.example', news: 'naja' },
    { name: 'Lars', email: 'lars@beispiel.example', news: 'x', product: '' },
    { name: 'Mia', email: 'mia@beispiel.example', news: 'Ja?' },
    { name: 'Otto', email: 'otto@beispiel.example', news: 'nein danke' },
    { name: 'Paula', email: 'paula@beispiel.example', news: 'Nein', product: 'vielleicht' },
    { name: 'Rosa', email: 'rosa@beispiel.example', product: 'nur per Post' },
    { name: 'Ulf', email: 'ulf@beispiel.example', news: '', product: '', left: '15.03.2021 14:05' },
    { name: 'Vera', email: 'vera@beispiel.example', news: 'Nein', deleted: 'Ja' },
    { id: '', name: 'Willi', email: 'willi@beispiel.example' },
    { id: '', name: 'Xaver', email: 'xaver@beispiel.example', news: 'Nein', product: 'Nein' },
    { id: '', name: 'Yvonne', email: 'yvonne@beispiel.example' },
    { name: 'Yvonne', email: 'Yvonne@Beispiel.Example' },
    { id: '\u00a0', name: 'Zoë', email: 'zoe@beispiel.example', product: 'Nein' },
    ...['tina', 'tina.neu', 'ute', 'uwe', 'rolf', 'ralf'].map((name, at) => {
      const no = name.startsWith('u') ? 'Nein' : 'Ja';
      const id = String(300_000 + Math.floor(at / 2));
      return { id, name: 'Familie', email: `${name}@beispiel.example`, news: no, product: no };
    }),
    { name: 'Rolf', email: 'rolf@beispiel.example' },
    { name: 'Sara', email: 'sara@beispiel.example', left: '02.01.2020' },
    { name: 'Sara', email: 'sara@beispiel.example' },
    { name: 'Tom', email: 'tom@beispiel.example', deleted: 'Ja' },
    { name: 'Tom', email: 'tom@beispiel.example', product: 'Nein' },
    { name: 'Udo', email: 'udo@beispiel.example', deleted: 'Ja', news: 'Nein' },
    { name: 'Udo', email: 'udo@beispiel.example' },
    { name: 'Ina', email: 'ina@beispiel.example', news: 'naja' },
    { name: 'Ina', email: 'INA@beispiel.example', product: 'Nein' },
  ],
  200_001,
);

/** Second records of somebody: the same one again, or another spelling and other words. */
const twins = plain
  .filter((_, at) => at % 80 === 7)
  .slice(0, 60)
  .map((row, at): Row => {
    if (at % 15 === 0) return row;
    const again = { ...row, id: String(400_000 + at), email: row.email.toUpperCase() };
    return { ...again, news: pick(news), product: pick(product), left: pick(['', '', date()]) };
  });

const noAddress = Array.from({ length: 30 }, (_, at): Row => {
  const row = { ...person(at), id: String(500_000 + at), email: at % 10 === 3 ? '\u00a0' : '' };
  return at % 10 === 5 ? { ...row, id: '', left: '11.11.2022' } : row;
});

const line = (row: Row) => {
  const { id = '', name = '', email = '', place = 'Ulm', news: in1, product: in2 } = row;
  const rest = [in1, in2, row.left, row.deleted].map((value) => value ?? '');
  return [id, name, email, `0${two(89)}12`, place, ...rest, date()].join(';');
};
const empty = columns.replaceAll(/[^;]/g, '');

/** The whole file: UTF-8 with a byte order mark, CRLF, and no line break at its end. */
export const makeExport = (): string => made;

const made = draw();

function draw(): string {
  const special = [...odd, ...twins, ...noAddress].map(line);
  special.splice(20, 0, empty);
  special.splice(70, 0, empty, empty, '');
  special.splice(special.length - 1, 0, empty, empty);
  const every = Math.floor(plain.length / special.length);
  const body = plain.flatMap((row, at) => {
    const next = at % every === every - 1 ? special.shift() : undefined;
    return next === undefined ? [line(row)] : [line(row), next];
  });
  return `\ufeff${[columns, ...body, ...special].join('\r\n')}`;
}

if (process.argv[1] === import.meta.filename) process.stdout.write(makeExport());
