import { z } from 'zod';
import type { Fault } from '../../domain/record.ts';
import { choice, fault, flag, reporter, text, whole } from '../../domain/schema-fields.ts';
import { mapLeaves } from '../../domain/stored-json.ts';
import { addressFault, headers, overlap, requestTimeout } from '../shared/option-fields.ts';

const page = z
  .strictObject({
    cursor: text(
      'Dotted path of the next cursor in a response, or of the address that holds it',
    ).optional(),
    param: text('Query parameter for the cursor').optional(),
    number: text('Query parameter for the page number').optional(),
    first: whole(0, 1, 'Number of the first page').optional(),
    size: text('Query parameter for the page size').optional(),
    sizeValue: whole(1, 100_000, 'Number of records per page').optional(),
  })
  .superRefine(({ cursor, param, number, first, size, sizeValue }, context) => {
    const wrong = reporter(context);
    if (cursor === undefined && number === undefined)
      wrong('cursor', 'is missing', 'add it, or number, as the API counts its pages');
    if (cursor !== undefined && number !== undefined)
      wrong('cursor', 'stands beside number', 'keep one of the two');
    if (cursor !== undefined && param === undefined)
      wrong('param', 'is missing', 'name the parameter that takes the cursor');
    if (cursor === undefined && param !== undefined)
      wrong('param', 'belongs to cursor', 'remove it');
    if (number === undefined && first !== undefined)
      wrong('first', 'belongs to number', 'remove it');
    if (size !== undefined && sizeValue === undefined)
      wrong('sizeValue', 'is missing', 'add it, or remove size');
    if (size === undefined && sizeValue !== undefined)
      wrong('size', 'is missing', 'add it, or remove sizeValue');
  })
  .describe('How to request the next page: with cursor and param, or with number');

const changes = z
  .strictObject({
    url: text('Address of the list of changed records, with {since} in place of the time'),
    format: choice(
      ['iso', 'unix', 'unixMs'],
      'iso',
      'Format of the time: ISO 8601, or seconds or milliseconds since 1970',
    ),
    overlap: overlap('Maximum delay until that list shows a change'),
  })
  .describe(
    'How to request the changes since a given time; responses and pages are like those of the list',
  );
export type ChangesOptions = z.infer<typeof changes>;

export const httpOptions = z
  .strictObject({
    type: z.literal('http').describe('An HTTP API that lists its records as JSON'),
    url: text('Address of the list, including its query: https'),
    headers: headers.optional(),
    records: text(
      'Dotted path of the list in a response; by default, the response itself is the list',
    ).optional(),
    total: text('Dotted path of the total number of records in a response').optional(),
    page: page.optional(),
    one: text('Address of a single record, with {id} in place of its id').optional(),
    changes: changes.optional(),
    timeoutMs: requestTimeout(30_000),
    allowHttp: flag('Allows plain HTTP to another machine').prefault(false),
  })
  .superRefine(({ url, one, page: paging, changes: list, allowHttp }, context) => {
    const wrong = reporter(context);
    const templateFault = (address: string, what: string, place: string) => {
      const noPlace = fault(`does not say where the ${what} belongs`, `write ${place} there`);
      const absent = address.includes(place) ? undefined : noPlace;
      return addressFault(address, allowHttp) ?? absent ?? hostFault(address, url);
    };
    wrong('url', addressFault(url, allowHttp) ?? paramFault(url, paging));
    if (one !== undefined) wrong('one', templateFault(one, 'id', '{id}'));
    if (list === undefined) return;
    if (one === undefined) {
      const why = 'needs the address of a single record, for the others of a person who changed';
      wrong('changes', why, 'add one');
    }
    const mistake = templateFault(list.url, 'time', '{since}');
    wrong(['changes', 'url'], mistake ?? paramFault(list.url, paging));
  });
export type HttpOptions = z.infer<typeof httpOptions>;

function paramFault(url: string, paging: z.infer<typeof page> | undefined): Fault | undefined {
  const { param, number, size } = paging ?? {};
  const twice = [param, number, size].some(
    (name) => name !== undefined && new URL(url).searchParams.has(name),
  );
  return twice ? fault('holds a parameter that page sets', 'remove it here') : undefined;
}

function hostFault(address: string, url: string): Fault | undefined {
  const isElsewhere = URL.parse(address)?.origin !== URL.parse(url)?.origin;
  return isElsewhere
    ? fault('is not where url is', 'the headers are for one host, use that')
    : undefined;
}

const returnPlaces = ['return', 'id', 'email', 'channel', 'cause', 'at'] as const;
const placeForm = /\{(\w*)\}/g;

export const httpReturnsOptions = z
  .strictObject({
    type: z.literal('http').describe('Sends a request to an HTTP API for each opt-out'),
    url: text(
      'Address of the request: https; {id} and {email} are replaced by the values of the person',
    ),
    method: z.enum(['PUT', 'PATCH', 'POST']).describe('Method of the request').default('POST'),
    headers: headers.optional(),
    body: z
      // Missing values become null, which differs in the JSON that is sent.
      .preprocess(
        (given) => mapLeaves(given, (leaf) => leaf ?? null),
        z.union([z.record(z.string(), z.json()), z.array(z.json())]),
      )
      .describe(
        'JSON to send; {email}, {id}, {channel}, {cause}, {at} and {return} are replaced by their values',
      )
      .optional(),
    allChannels: flag(
      'The request opts the person out of every channel, whichever of them the person left',
    ).optional(),
    timeoutMs: requestTimeout(30_000),
    allowHttp: flag('Allows plain HTTP to another machine').prefault(false),
  })
  .superRefine(({ url, body, allowHttp }, context) => {
    const wrong = reporter(context);
    const filledHost = fault('fills in its host', 'write that as it is');
    const inHost = URL.parse(url)?.host.includes('{') ? filledHost : undefined;
    wrong('url', addressFault(url, allowHttp) ?? fillFault(url) ?? inHost);
    wrong('body', fillFault(JSON.stringify(body) ?? ''));
  });
export type HttpReturnsOptions = z.infer<typeof httpReturnsOptions>;

/** Returns whether a request says which channel the person left, in `url` or a text of `body`. */
export function fillsInChannel({ url, body }: { url: string; body?: unknown }): boolean {
  if (typeof body === 'string') return body.includes('{channel}');
  const inner = typeof body === 'object' && body !== null ? Object.values(body) : [];
  return url.includes('{channel}') || inner.some((value) => fillsInChannel({ url, body: value }));
}

function fillFault(within: string): Fault | undefined {
  const known: readonly string[] = returnPlaces;
  const unknown = [...within.matchAll(placeForm)].find(([, name = '']) => !known.includes(name));
  if (!unknown) return undefined;
  return fault(`holds {${unknown[1]}}, which stands for nothing`, `use {${known.join('}, {')}}`);
}
