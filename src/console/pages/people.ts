/**
 * Finds a person by address, CRM id or hash, lists the people who need somebody, and shows one
 * person: as recorded, as CRM and platform answer now, and as a signed file.
 */
import { Invalid, renderProblem } from '../../domain/errors.ts';
import type { Key } from '../../domain/record.ts';
import { contactKey } from '../../domain/values/contact-key.ts';
import { searchPeople } from '../../views/person/person-records.ts';
import type { Seen } from '../../views/lookup/seen-mirror.ts';
import { waitingSections } from '../../views/lookup/standing-problems.ts';
import { personLink, readerOf, channelName, personIn } from '../view/console-text.ts';
import { html, type Html, prose, sectionsHtml } from '../../views/render/html.ts';
import { linkTo, type Page, type PageRequest, link, type PageContent } from '../view/page.ts';
import type { ProblemCause } from '../../domain/problem-causes.ts';
import { shortHash } from '../../engine/context/person-identity.ts';
import { readMemoryKey } from '../../store/memory/memory-key.ts';
import { namesOf } from '../../views/lookup/person-names.ts';
import {
  askAbout,
  type PersonDocument,
  recordedAbout,
} from '../../views/person/person-document.ts';
import { outlookFor } from '../../views/person/person-outlook.ts';
import { headOf, personSections } from '../../views/person/person-sections.ts';
import { signedText } from '../../views/person/signed-person.ts';
import { actionForm, askForm, forbidden, notOperator, textField } from '../view/form.ts';

/** The page of the search. */
export const peoplePage: Page = {
  path: 'people',
  nav: 'People',
  show: async (request) => contentOf(request, ''),
  async search(request, { who = '' }) {
    const found = await request.mirror.read(request.user, async (seen) => {
      const { keys, isExact = false, none } = await findPeople(seen, who, request.user);
      const [only, ...others] = keys;
      const { snapshot, names } = seen;
      if (!snapshot || only === undefined)
        return html`<p class="flash">${prose(none ?? '')}</p>
          <form method="post" action="/people">
            <input type="hidden" name="who" value="${who.slice(0, 300)}" />
            <button class="second">Search all mirrors</button>
          </form>`;
      if (others.length === 0 && isExact) return { to: personLink(request, snapshot, only) };
      const what = isExact
        ? 'Several people have this CRM id:'
        : `Nobody has exactly this. The first addresses that begin like it:`;
      const people = keys.map((key) => {
        const record = { kind: 'contact', key } as const;
        return { record, name: names(record) };
      });
      const list = [{ lines: [what] }, { lines: people, isList: true }];
      return sectionsHtml(list, readerOf(request, snapshot));
    });
    return 'to' in found ? found : contentOf(request, found, who);
  },
};

interface Found {
  keys: readonly Key[];
  /** Whether the words name these people, instead of only the beginning of their addresses. */
  isExact?: boolean;
  /** Whether they name a record that cannot be used. */
  isUnusable?: boolean;
  /** Whether they are no address, id or hash. */
  isMalformed?: boolean;
  none?: string;
}

/** Returns the people found, or why there are none. */
export async function findPeople(
  { snapshot, ...seen }: Seen,
  who: string,
  user: PageRequest['user'],
): Promise<Found> {
  if (!snapshot) return { keys: [], none: 'There is no snapshot yet: the first run makes it.' };
  try {
    const keys = await searchPeople({ ...seen, snapshot }, who.slice(0, 500));
    if (keys.length > 0) return { keys, isExact: true };
  } catch (error) {
    if (error instanceof Invalid)
      return { keys: [], isMalformed: true, none: `${hint}, such as #9cc428f416d4.` };
    throw error;
  }
  const [unusable] = snapshot.problems.counted.listOf('contact', `id ${who.trim()}`);
  if (unusable) {
    const why = renderProblem({ reason: unusable.reason, fix: unusable.fix });
    const none = `The record of the CRM with this id cannot be used: ${why}`;
    return { keys: [], isUnusable: true, none };
  }
  // Users who see hashes get none: they could find out addresses letter by letter.
  const begin = contactKey(who);
  const mayList = user.seesAddresses && begin.length >= fewest;
  const begun = mayList ? snapshot.recorded.next('contact', begin, listed) : [];
  const none =
    'Nobody was found. This mirror has no record of such a person, and neither the do-not-contact ' +
    'list nor the audit log names them. Is the address spelled as the CRM spells it?';
  return { keys: begun.map(({ key }) => key).filter((key) => key.startsWith(begin)), none };
}

const hint = 'Type the whole address, a CRM id or a hash';
const fewest = 2;
const listed = 10;

/** `who`: what was searched for. The form is sent with POST, so it is in no address. */
async function contentOf(request: PageRequest, result: Html | '', who = '') {
  // The links are made while the snapshot is open, because they are sealed with its key.
  const lists = await request.mirror.read(request.user, (seen) =>
    sectionsHtml(waitingSections(seen), readerOf(request, seen.snapshot)),
  );
  const body = html`<form class="action" method="post" action="${linkTo(request, 'people')}">
      ${textField('Address, CRM id or hash', { name: 'who', value: who.slice(0, 300) })}
      <button>Find</button>
    </form>
    <p class="quiet">
      ${hint}.${request.user.seesAddresses ? ' The beginning of an address lists the first who match.' : ''}
    </p>
    <div role="status">${result}</div>
    ${lists}`;
  return { title: 'People', body };
}

/** The page of one person. */
export const personPage: Page = {
  path: 'people/:id',
  async show(request) {
    const { mirror, user, id } = request;
    const { config } = mirror;
    return mirror.read(user, ({ snapshot, names, now }) => {
      const key = snapshot && personIn(snapshot, id);
      if (!snapshot || key === undefined) return nobody;
      const asked = { config, key, names, addresses: user.seesAddresses };
      const document = recordedAbout({ snapshot, now }, asked);
      return { title: document.person, body: bodyOf(request, key, document) };
    });
  },
};

/** What `explain` says, for operators: it sends requests. */
export const personNowPage: Page = {
  path: 'people/:id/now',
  show: (request) => (request.user.role === 'operator' ? question(request, 'now') : notOperator),
  async ask(request) {
    const { mirror, user } = request;
    if (user.role !== 'operator') return notOperator;
    return mirror.assembled(async (opened, shell) => {
      const { snapshot } = opened.mirror;
      const key = personIn(snapshot, request.id);
      if (key === undefined) return nobody;
      const names = namesOf(snapshot, user.seesAddresses);
      const asked = { config: mirror.config, key, names, addresses: user.seesAddresses };
      const document = await askAbout(opened, shell, asked);
      const body = html`<p>${headOf(document)}. ${linkBack(request)}</p>
        ${bodyOf(request, key, document)}`;
      return { title: `${document.person}, asked now`, body };
    });
  },
};

/** All of it as a signed file, for those who see addresses: it names the person by theirs. */
export const personFile: Page = {
  path: 'people/:id/signed.html',
  show: (request) => (request.user.seesAddresses ? question(request, 'file') : notForViewers),
  async ask({ mirror, user, id }) {
    if (!user.seesAddresses) return notForViewers;
    return mirror.assembled(async (opened, shell) => {
      const { snapshot, clock } = opened.mirror;
      const key = personIn(snapshot, id);
      if (key === undefined) return nobody;
      const { config } = mirror;
      const hashed = namesOf(snapshot, false);
      const names: typeof hashed = (record) => (record.key === key ? key : hashed(record));
      const asked = { config, key, names, addresses: true, isWhole: true };
      const document = await askAbout(opened, shell, asked);
      const signing = readMemoryKey(config.memory.keyFile)?.signing;
      const how = { format: 'html', key: signing, now: clock.now() } as const;
      const text = await signedText(document, how);
      const name = shortHash(snapshot.meta, key).slice(1);
      return { name: `person-${name}.html`, type: 'text/html', text };
    });
  },
};

const nobody = {
  title: 'Nobody is here',
  code: 404,
  body: html`<p>
    This address belongs to no person of this mirror. Links end when the snapshot begins anew:
    search again.
  </p>`,
};

const notForViewers = forbidden('The file contains the address of the person');

function question(request: PageRequest, what: keyof typeof questions): PageContent {
  const body = html`${questionForm(request, what)}
    <p>${linkBack(request)}</p>`;
  return { title: 'One person', body };
}

function linkBack(request: PageRequest): Html {
  return link(request, `people/${request.id}`, 'Back to the person');
}

const extent = { happenings: 60, characters: 600 };

function bodyOf(request: PageRequest, key: Key, document: PersonDocument): Html {
  return sectionsHtml(personSections(document, extent), {
    ...readerOf(request),
    forms(id) {
      if (id === 'answers') return personButtons(request, key, document);
      const { conflict, isHeld } = outlookFor(document, id);
      return html`${isHeld && link(request, 'approvals', 'Approvals')}
      ${conflict && resolveForms(request, key, { channel: id, conflict })}`;
    },
  });
}

/** The conflicts in which nobody is known to have opted out, so that `resolve --in` may be used. */
const mayBeIn: ReadonlySet<ProblemCause> = new Set(['own-opt-out', 'undone', 'opt-out-doubtful']);

const onPlatform = 'the person opted out on the platform, and only the person can come back';

/** Why an operator cannot say that the person wants in, where that is not what the person did. */
const notIn: Readonly<Partial<Record<ProblemCause, string>>> = {
  'several-contacts': 'several contacts share the address: delete all but one on the platform',
  'records-contradict': 'the records in the CRM contradict each other: merge them there',
  renamed: 'the two sides have different addresses: make them equal first',
  'renamed-claimed': 'another record of the CRM has the address: correct that one first',
  vanished: 'the contact is no longer on the platform, and not by this mirror',
};

/** Returns the form that resolves a conflict; '' for those who may not. */
function resolveForms(
  request: PageRequest,
  key: Key,
  { channel, conflict }: { channel: string; conflict: ProblemCause },
): Html | '' {
  if (request.user.role !== 'operator' || conflict === 'erased') return '';
  const isIn = mayBeIn.has(conflict);
  const into = { label: 'The person wants in', sends: { name: 'to', value: 'in' } };
  const out = { label: 'The person wants out', sends: { name: 'to', value: 'out' } };
  const missing = `“The person wants in” is not offered: ${notIn[conflict] ?? onPlatform}.`;
  return html`<details>
    <summary>Resolve the conflict in ${channelName(request, channel)}</summary>
    <p class="quiet">
      The CRM and the platform are read first. Nothing is sent now: the next run does it. Name no
      address in the texts, because they are kept in the audit log.
    </p>
    ${!isIn && html`<p class="quiet">${missing}</p>`}
    ${actionForm(request, {
      action: 'resolve',
      ...(isIn ? { ...into, second: out } : out),
      values: { person: key, channel },
      needsReason: true,
      fields: textField('Evidence', { name: 'evidence', example: 'a ticket, a signed form' }),
    })}
  </details>`;
}

const questions = {
  now: { end: 'now', label: 'Ask CRM and platform now' },
  file: { end: 'signed.html', label: 'Download all of it, signed' },
} as const;

function questionForm(request: PageRequest, what: keyof typeof questions): Html {
  const { end, label } = questions[what];
  return askForm(request, { path: `people/${request.id}/${end}`, label });
}

function personButtons(request: PageRequest, key: Key, { parked, reports }: PersonDocument): Html {
  const isOperator = request.user.role === 'operator';
  const isRefused = parked.length > 0 || reports.some(({ state }) => state === 'rejected');
  const about = { values: { person: key }, needsReason: 'optional' } as const;
  const retry = { action: 'retry', label: 'Try again', ...about };
  return html`<div class="row">
    ${isOperator && questionForm(request, 'now')}
    ${isOperator && isRefused && actionForm(request, retry)}
    ${request.user.seesAddresses && questionForm(request, 'file')}
  </div>`;
}
