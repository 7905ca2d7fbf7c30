/** Which fields to ask for, so that every field of the configuration is there. */
import type { Clock } from '../../domain/clock.ts';
import { Invalid } from '../../domain/errors.ts';
import { nearest, quoted } from '../shared/field-suggestions.ts';
import type { Api } from './tryton-api.ts';

/** So long the fields are believed where a single party is read. */
const HOLDS_MS = 10 * 60_000;

/** What a record has of its own, or makes of what Tryton has. */
const own = ['id', 'active', 'inactive', 'email', 'emails', 'lang', 'categories'];

/** Of which a record could not say what it holds. */
const unreadable = new Set(['one2many', 'many2many', 'binary']);

/** A field of a party besides those. */
export interface Extra {
  name: string;
  /** A truth is not always told as one. */
  isTruth: boolean;
  /** What it names has a name of its own. */
  isLink: boolean;
}

/** What is asked of each party. */
export interface SelectedFields {
  extras: readonly Extra[];
  lang: boolean;
  categories: boolean;
}

/** Throws Invalid where one is not there. */
export interface Fields {
  now(api: Api, fields: readonly string[]): Promise<SelectedFields>;
  /** By what was known a while ago. */
  lately(api: Api, fields: readonly string[]): Promise<SelectedFields>;
}

export function createFields(clock: Clock): Fields {
  let known: { types: ReadonlyMap<string, string>; at: number } | undefined;
  const now: Fields['now'] = async (api, fields) => {
    const types = await api.fields();
    known = { types, at: clock.monotonic() };
    return wantedOf(fields, types, api.host);
  };
  return {
    now,
    async lately(api, fields) {
      const isKnown = known && clock.monotonic() - known.at < HOLDS_MS;
      return known && isKnown ? wantedOf(fields, known.types, api.host) : now(api, fields);
    },
  };
}

/** As Tryton is asked for them: a name within another comes under the other's name and a dot. */
export function askedFor({ extras, lang, categories }: SelectedFields): string[] {
  return [
    'active',
    'replaced_by',
    'contact_mechanisms.type',
    'contact_mechanisms.value',
    'contact_mechanisms.active',
    ...(lang ? ['lang.code'] : []),
    ...(categories ? ['categories.name'] : []),
    ...extras.map(({ name, isLink }) => (isLink ? `${name}.rec_name` : name)),
  ];
}

function wantedOf(
  fields: readonly string[],
  types: ReadonlyMap<string, string>,
  host: string,
): SelectedFields {
  const others = fields.filter((field) => !own.includes(field));
  const names = new Set(others.map((field) => nameOf(field, types)));
  const extras = [...names].map((name): Extra => {
    const type = types.get(name);
    if (type === undefined) throw unknown(name, [...types.keys(), ...own], host);
    if (unreadable.has(type)) throw several(name, type, host);
    return { name, isTruth: type === 'boolean', isLink: /^(many2one|one2one)$/.test(type) };
  });
  return { extras, lang: fields.includes('lang'), categories: fields.includes('categories') };
}

/** Of a path into a dictionary, that one. */
function nameOf(field: string, types: ReadonlyMap<string, string>): string {
  const [head = ''] = field.split('.', 1);
  return types.get(head) === 'dict' ? head : field;
}

function unknown(name: string, names: readonly string[], host: string): Invalid {
  const near = nearest(name, names);
  const hint = near === undefined ? '' : `; did you mean ${quoted(near)}?`;
  const none = `a party has no field ${quoted(name)} that this user may read`;
  return new Invalid(`${host}: ${none}${hint} → correct the configuration, by names of fields`);
}

function several(name: string, type: string, host: string): Invalid {
  const what = `the field ${quoted(name)} of a party is no single value (${type})`;
  return new Invalid(`${host}: ${what} → name another; lists are read of categories alone`);
}
