/** Finds a person by address, CRM id or hash, and lists the people who need somebody. */
import { Invalid, renderProblem } from '../../domain/errors.ts';
import type { Key } from '../../domain/record.ts';
import { contactKey } from '../../domain/values/contact-key.ts';
import { searchPeople } from '../../views/person/person-records.ts';
import { approvalFinder } from '../../views/lookup/standing-problems.ts';
import { maskedText } from '../../views/lookup/person-names.ts';
import { byWords } from '../../compose/output/decision-words.ts';
import { changeName } from '../../compose/output/change-words.ts';
import type { Seen } from '../../views/lookup/seen-mirror.ts';
import { channelName, personLink, withChannelNames } from '../view/console-text.ts';
import { html, type Html, prose } from '../../views/render/html.ts';
import { link, linkTo, type Page, type PageRequest } from '../view/page.ts';

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

/** `who`: what was searched for. The form is sent with POST, so it is in no address. */
async function contentOf(request: PageRequest, result: Html | '', who = '') {
  const lists = await request.mirror.read(request.user, (seen) => listsOf(request, seen));
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

const listed = 10;
/** How many changes are looked at, to find some that nobody has decided about. */
const looked = 1_000;

interface Listed {
  key: Key;
  text: string;
}

function listsOf(request: PageRequest, { snapshot, names, config, now }: Seen): Html {
  if (!snapshot) return html`<p class="quiet">There is no snapshot yet.</p>`;
  const { retryLater, awaitingApproval } = snapshot;
  const problem = ({ key, part, reason }: { key: Key; part: string; reason: string }): Listed => {
    const text = maskedText(reason, names);
    const whole = text.startsWith(`${part}: `) ? text : `${part}: ${text}`;
    return { key, text: withChannelNames(request, whole) };
  };
  const refused = retryLater.refusedOptOuts(listed).map(problem);
  const conflicts = retryLater.conflicts('contact', listed).map(problem);
  const approvalOf = approvalFinder(snapshot, { approvers: config.approvers, now });
  const withheld = awaitingApproval
    .current()
    .flatMap(({ plan }) => awaitingApproval.changes(plan, looked))
    .filter(({ kind }) => kind === 'contact')
    .map(({ kind, key, op, part }): Listed & { isApproved: boolean } => {
      const approval = approvalOf({ kind, key, op, part });
      const end = approval ? `: approved${byWords(approval)}, waits for a run` : '';
      const where = part === '' ? '' : `: ${channelName(request, part)}`;
      const text = `${changeName(op, false)}${where}${end}`;
      return { key, text, isApproved: approval !== undefined };
    });
  const held = withheld.filter(({ isApproved }) => !isApproved).slice(0, listed);
  const approved = withheld.filter(({ isApproved }) => isApproved).slice(0, listed);
  const section = (title: string, people: readonly Listed[], more: Html): Html | '' =>
    people.length === 0
      ? ''
      : html`<section>
          <h2>${title}</h2>
          <ul>
            ${people.map(
              ({ key, text }) =>
                html`<li>
                  <a href="${personLink(request, snapshot, key)}"
                    >${names({ kind: 'contact', key })}</a
                  >
                  ${text}
                </li>`,
            )}
          </ul>
          <p>${more}</p>
        </section>`;
  const isCalm = refused.length + conflicts.length + held.length === 0;
  return html`${section('Opt-outs that could not be applied', refused, link(request, 'problems?class=rejected', 'All that was refused'))}
  ${section('Conflicts', conflicts, link(request, 'problems?class=conflict', 'All conflicts'))}
  ${section('Awaiting approval', held, link(request, 'approvals', 'All that awaits approval'))}
  ${section('Approved, waits for a run', approved, link(request, 'approvals', 'All that is approved'))}
  ${isCalm ? html`<p class="quiet">Nobody waits for a decision: no conflict, no refused opt-out, and nothing awaits approval.</p>` : ''}`;
}
