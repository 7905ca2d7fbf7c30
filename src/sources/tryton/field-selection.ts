/** Selects the fields to request, so that every field of the configuration is included. */
import type { Clock } from '../../domain/clock.ts';
import { Invalid } from '../../domain/errors.ts';
import { nearest, quoted } from '../shared/field-suggestions.ts';
import type { Api } from './tryton-api.ts';

/** How long the fields are trusted when a single party is read. */
const HOLDS_MS = 10 * 60_000;

/** Fields that a record always has, or that are derived from Tryton's data. */
const own = ['id', 'active', 'inactive', 'email', 'emails', 'lang', 'categories'];

/** Types whose values a record cannot contain. */
const unreadable = new Set(['one2many', 'many2many', 'binary']);

/** An additional field of a party. */
export interface Extra {
  name: string;
  /** Whether it is a boolean, which is not always represented as one. */
  isTruth: boolean;
  /** Whether it is a link to a record that has a name. */
  isLink: boolean;
}

/** The fields to request for each party. */
export interface SelectedFields {
  extras: readonly Extra[];
  lang: boolean;
  categories: boolean;
}

/** Selects fields. Throws Invalid if one does not exist. */
export interface Fields {
  now(api: Api, fields: readonly string[]): Promise<SelectedFields>;
  /** Selects fields using definitions that may have been looked up some time ago. */
  lately(api: Api, fields: readonly string[]): Promise<SelectedFields>;
}

/** Creates a selection that remembers the field definitions. */
export function createFields(clock: Clock): Fields {
  let known: { types: ReadonlyMap<string, string>; at: number } | undefined;
  /** Looks the field definitions up now. */
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

/**
 * Returns the names to request from Tryton. A field of a linked record is named by the link, a dot
 * and its own name.
 */
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

/** Returns the name of a field. For a path into a dictionary, this is the dictionary's name. */
function nameOf(field: string, types: ReadonlyMap<string, string>): string {
  const [head = ''] = field.split('.', 1);
  return types.get(head) === 'dict' ? head : field;
}

function unknown(name: string, names: readonly string[], host: string): Invalid {
  const near = nearest(name, names);
  const hint = near === undefined ? '' : `; did you mean ${quoted(near)}?`;
  const none = `a party has no field ${quoted(name)} that this user may read`;
  return new Invalid(`${host}: ${none}${hint}`, {
    fix: 'correct the configuration, by names of fields',
  });
}

function several(name: string, type: string, host: string): Invalid {
  const what = `the field ${quoted(name)} of a party is no single value (${type})`;
  return new Invalid(`${host}: ${what}`, {
    fix: 'name another; lists are read of categories alone',
  });
}
