import { Invalid } from '../../domain/errors.ts';
import type { PlatformBehaviour } from '../store/organization.ts';
import {
  allChannels,
  deleteSoft404,
  listGroupsEmpty,
  nullNames,
  searchWildcards,
  unsortedTies,
} from './contact-quirks.ts';
import {
  emailAsGiven,
  enrolRaw,
  enrolStatus,
  enrolTouches,
  noFlip,
  unknownEmail,
} from './enrolment-quirks.ts';
import { headers, retryAfterBody, retryAfterShort, retryAfterStuck } from './limit-quirks.ts';
import type { Quirk, QuirkRequest, Reply } from './quirk.ts';
import { contentRederivesVariables, templateLimit, templateTotal } from './template-quirks.ts';
import {
  domainStatuses,
  emptyUserAgent,
  errorMessageOnly,
  eventIds,
  validationStatus,
} from './wording-quirks.ts';

/** A quirk with its name. */
interface Entry {
  name: string;
  /** A one-line description for users. */
  line: string;
  /** The values allowed after `name=`. The first one is the default. */
  values?: readonly string[];
  make(value: string): Quirk;
}

/** Lists every quirk in the order in which they apply. */
export const quirks: readonly Entry[] = [
  { name: 'no-flip', line: 'enrolling with the other subscription: 409, unchanged', make: noFlip },
  {
    name: 'unknown-email',
    values: ['404'],
    line: 'enrolling an unknown email: 404, nobody is made',
    make: unknownEmail,
  },
  { name: 'enrol-status', values: ['200'], line: 'an enrolment answers 200', make: enrolStatus },
  {
    name: 'all-channels',
    values: ['opt_out', 'opt_in'],
    line: 'contacts name every channel; the default where they have no row',
    make: allChannels,
  },
  {
    name: 'list-groups-empty',
    line: 'the list of contacts shows no groups',
    make: listGroupsEmpty,
  },
  { name: 'null-names', line: 'names that are not known are null', make: nullNames },
  { name: 'enrol-raw', line: 'an enrolment answers a contact without channels', make: enrolRaw },
  {
    name: 'enrol-touches',
    line: 'a change of a subscription moves updatedAt of the contact',
    make: enrolTouches,
  },
  {
    name: 'delete-soft-404',
    line: 'deleting an unknown contact: 200 with only a message',
    make: deleteSoft404,
  },
  { name: 'search-wildcards', line: '% and _ in a search are wildcards', make: searchWildcards },
  {
    name: 'email-as-given',
    line: 'sign-ups keep the case of their email, enrolments do not find them',
    make: emailAsGiven,
  },
  {
    name: 'unsorted-ties',
    line: 'contacts of one millisecond are listed in changing order',
    make: unsortedTies,
  },
  {
    name: 'template-total',
    values: ['page'],
    line: 'total of the template list counts this page only',
    make: templateTotal,
  },
  {
    name: 'template-limit',
    values: ['10'],
    line: 'the template list gives 10 unless asked for more',
    make: templateLimit,
  },
  {
    name: 'content-rederives-variables',
    line: 'content without variables replaces the variables',
    make: contentRederivesVariables,
  },
  { name: 'domain-statuses', line: 'a new domain is start-verify', make: domainStatuses },
  {
    name: 'empty-user-agent',
    values: ['400'],
    line: 'a request without User-Agent: 400',
    make: emptyUserAgent,
  },
  {
    name: 'validation-status',
    values: ['422'],
    line: 'what does not fit the schemas: 422',
    make: validationStatus,
  },
  { name: 'event-ids', line: 'event is evt_…, not a name', make: eventIds },
  { name: 'error-message-only', line: 'errors have a message only', make: errorMessageOnly },
  {
    name: 'retry-after-short',
    line: 'Retry-After is up to half a second short',
    make: retryAfterShort,
  },
  {
    name: 'retry-after-stuck',
    line: 'a used-up limit says Retry-After: 1 for ever',
    make: retryAfterStuck,
  },
  {
    name: 'headers',
    values: ['reset', 'none', 'none-templates'],
    line: 'rate limits: seconds left, no headers, none on templates',
    make: headers,
  },
  { name: 'retry-after-body', line: 'a 429 repeats it as retryAfter', make: retryAfterBody },
];

/**
 * Combines quirks from texts such as `no-flip` and `headers=reset`. Throws Invalid for an unknown
 * quirk.
 */
export function createQuirks(texts: readonly string[]): Required<Quirk> {
  const chosen = new Map(
    texts.map((text) => {
      const [name = '', ...given] = text.split('=');
      const entry = quirks.find((one) => one.name === name);
      const known = spellings().map((one) => one.text);
      if (!entry) throw new Invalid(`quirk "${text}" is not known: use ${known.join(', ')}`);
      if (texts.filter((other) => other.split('=')[0] === name).length > 1) {
        throw new Invalid(`quirk "${name}" is given twice: choose one`);
      }
      const { values = [''] } = entry;
      const value = given.length > 0 ? given.join('=') : values[0];
      if (value !== undefined && values.includes(value) && (value !== '' || given.length === 0)) {
        return [name, value];
      }
      const mend = entry.values ? `write ${name}=${values.join('|')}` : `write ${name} alone`;
      throw new Invalid(`quirk "${text}" does not know that value: ${mend}`);
    }),
  );
  const played = quirks.flatMap((entry) => {
    const value = chosen.get(entry.name);
    return value === undefined ? [] : [entry.make(value)];
  });
  const behaviour: Partial<PlatformBehaviour> = {};
  for (const quirk of played) Object.assign(behaviour, quirk.behaviour);
  return {
    behaviour,
    rewrites: (question: QuirkRequest) =>
      played.reduce((asked, { rewrites }) => rewrites?.(asked) ?? asked, question),
    answers(question, organization) {
      for (const { answers } of played) {
        const outcome = answers?.(question, organization);
        if (outcome) return outcome;
      }
      return undefined;
    },
    turns: (reply: Reply) => played.reduce((said, { turns }) => turns?.(said) ?? said, reply),
    restart() {
      for (const quirk of played) quirk.restart?.();
    },
  };
}

/**
 * Returns every quirk as written on the command line, such as `headers=reset|none|none-templates`.
 */
export function spellings(): { text: string; line: string }[] {
  return quirks.map(({ name, values, line }) => ({
    text: values ? `${name}=${values.join('|')}` : name,
    line,
  }));
}
