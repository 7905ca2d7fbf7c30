/** Selects the properties to request, so that every field of the configuration is included. */
import type { Clock } from '../../domain/clock.ts';
import { Invalid } from '../../domain/errors.ts';
import { quoted, hintsFor } from '../shared/field-suggestions.ts';
import type { ReadRequest } from '../source.ts';
import type { Surroundings } from '../shared/crm-request.ts';
import { type Api, createApi, tokenOf } from './hubspot-api.ts';
import { mergedProperties } from './contact-record.ts';
import type { HubspotOptions } from './options.ts';
import { createPace } from './request-pace.ts';

/** How long the property names are trusted when a single contact is read. */
const HOLDS_MS = 15 * 60_000;

const own = ['id', 'createdAt', 'updatedAt', 'archived', 'archivedAt'];
const inside = 'properties.';

/**
 * Selects properties. HubSpot silently omits an unknown property, so the field would look empty and
 * an opt-out could be missed. Therefore the names are requested first. Throws Invalid if a property
 * does not exist.
 */
export interface Properties {
  /**
   * Looks the names up now. Returns the properties, and the time of the lookup by HubSpot's clock,
   * if known.
   */
  now(api: Api, request: ReadRequest): Promise<{ properties: string[]; at: number | undefined }>;
  /** Returns the properties, using names that may have been looked up some time ago. */
  lately(api: Api, request: ReadRequest): Promise<string[]>;
}

/** Creates a selection that remembers the names. */
export function createProperties(clock: Clock): Properties {
  let known: { names: ReadonlySet<string>; at: number } | undefined;
  const now: Properties['now'] = async (api, { fields, signal }) => {
    const wanted = wantedOf(fields, api.host);
    const { names, at } = await api.names(signal);
    known = { names, at: clock.monotonic() };
    return { properties: askedFor(wanted, names, api.host), at };
  };
  return {
    now,
    async lately(api, request) {
      const isKnown = known && clock.monotonic() - known.at < HOLDS_MS;
      if (!known || !isKnown) return (await now(api, request)).properties;
      return askedFor(wantedOf(request.fields, api.host), known.names, api.host);
    },
  };
}

/**
 * Returns the properties for the given fields. Throws Invalid for a field that a contact cannot
 * have.
 */
function wantedOf(fields: readonly string[], host: string): string[] {
  const strange = fields.find((field) => !own.includes(field) && !field.startsWith(inside));
  if (strange !== undefined) {
    const near = own.find((name) => name.toLowerCase() === strange.toLowerCase());
    const mend = `write ${quoted(near ?? inside + strange)}`;
    const has = `a contact has the fields ${own.join(', ')} and ${inside}NAME`;
    throw new Invalid(`${host}: there is no field ${quoted(strange)}; ${has}`, { fix: mend });
  }
  const named = fields.filter((field) => field.startsWith(inside));
  return [...new Set(named.map((field) => field.slice(inside.length)))];
}

/** Returns the names of all properties that contacts of an account have. */
export async function hubspotProperties(
  options: HubspotOptions,
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<string[]> {
  const token = await tokenOf(options);
  const api = createApi({ ...options, token }, { ...surroundings, pace: createPace() });
  try {
    const { names } = await api.names(signal);
    return [...names];
  } finally {
    await api.close();
  }
}

function askedFor(wanted: readonly string[], names: ReadonlySet<string>, host: string): string[] {
  const missing = wanted.filter((name) => !names.has(name));
  if (missing.length === 0) return [...new Set([...wanted, ...mergedProperties])];
  const hints = hintsFor(missing, [...names]);
  const none = `contacts have no property ${missing.map(quoted).join(', ')}`;
  const mend = 'correct the configuration, by internal names, or make it in HubSpot';
  throw new Invalid(`${host}: ${[none, ...hints].join('; ')}`, { fix: mend });
}
