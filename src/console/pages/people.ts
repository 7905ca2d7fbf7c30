/** Finds a person by address, CRM id or hash, and lists the people who need somebody. */
import { Invalid, renderProblem } from '../../domain/errors.ts';
import type { Key } from '../../domain/record.ts';
import { contactKey } from '../../domain/values/contact-key.ts';
import { searchPeople } from '../../views/person/person-records.ts';
import type { Seen } from '../../views/lookup/seen-mirror.ts';
import { waitingSections } from '../../views/person/waiting-people.ts';
import { personLink, personReader } from '../view/console-text.ts';
import { html, type Html, prose, sectionsHtml } from '../../views/render/html.ts';
import { linkTo, type Page, type PageRequest } from '../view/page.ts';

/** The page of the search. */
export const peoplePage: Page = {
  path: 'people',
  nav: 'People',
  show: async (request) => contentOf(request, ''),
  async search(request, { who = '' }) {
    const found = await request.mirror.read(request.user, async (seen) => find(request, seen, who));
    if (typeof found === 'string')
      return contentOf(request, html`<p class="flash">${prose(found)}</p>`, who);
    const [only, ...others] = found.people;
    if (only && others.length === 0 && found.isExact) return { to: only.href };
    const links = found.people.map(
      ({ href, name }) => html`<li><a href="${href}">${name}</a></li>`,
    );
    const what = found.isExact
      ? 'Several people have this CRM id:'
      : `Nobody has exactly this. The first addresses that begin like it:`;
    const list = html`<p>${what}</p>
      <ul>
        ${links}
      </ul>`;
    return contentOf(request, list, who);
  },
};

/**
 * Returns the people found, or why there are none. `isExact`: the words name these people, instead
 * of only the beginning of their addresses.
 */
async function find(
  request: PageRequest,
  { snapshot, names, ...seen }: Seen,
  who: string,
): Promise<{ people: { href: string; name: string }[]; isExact: boolean } | string> {
  if (!snapshot) return 'There is no snapshot yet: the first run makes it.';
  let keys: Key[];
  try {
    keys = await searchPeople({ ...seen, snapshot }, who.slice(0, 500));
  } catch (error) {
    if (error instanceof Invalid) return `${hint}, such as #9cc428f416d4.`;
    throw error;
  }
  const named = (found: readonly Key[], isExact: boolean) => ({
    isExact,
    people: found.map((key) => ({
      href: personLink(request, snapshot, key),
      name: names({ kind: 'contact', key }),
    })),
  });
  if (keys.length > 0) return named(keys, true);
  const [unusable] = snapshot.problems.counted.listOf('contact', `id ${who.trim()}`);
  if (unusable) {
    const { reason, fix } = unusable;
    return `The record of the CRM with this id cannot be used: ${renderProblem({ reason, fix })}`;
  }
  // Users who see hashes get none: they could find out addresses letter by letter.
  const begin = contactKey(who);
  const mayList = request.user.seesAddresses && begin.length >= fewest;
  const begun = mayList ? snapshot.recorded.next('contact', begin, listed) : [];
  const people = begun.map(({ key }) => key).filter((key) => key.startsWith(begin));
  if (people.length > 0) return named(people, false);
  return (
    'Nobody was found. This mirror has no record of such a person, and neither the do-not-contact ' +
    'list nor the audit log names them. Is the address spelled as the CRM spells it?'
  );
}

const hint = 'Type the whole address, a CRM id or a hash';
const fewest = 2;
const listed = 10;

/** `who`: what was searched for. The form is sent with POST, so it is in no address. */
async function contentOf(request: PageRequest, result: Html | '', who = '') {
  // The links are made while the snapshot is open, because they are sealed with its key.
  const lists = await request.mirror.read(request.user, (seen) =>
    sectionsHtml(waitingSections(seen), personReader(request, seen.snapshot)),
  );
  const body = html`<form class="action" method="post" action="${linkTo(request, 'people')}">
      <label
        >Address, CRM id or hash
        <input
          name="who"
          value="${who.slice(0, 300)}"
          required
          maxlength="300"
          autocomplete="off"
          spellcheck="false"
        />
      </label>
      <button>Find</button>
    </form>
    <p class="quiet">
      ${hint}.${request.user.seesAddresses ? ' The beginning of an address lists the first who match.' : ''}
    </p>
    <div role="status">${result}</div>
    ${lists}`;
  return { title: 'People', body };
}
