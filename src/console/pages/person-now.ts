/** Asks the CRM and the platform about one person: the answer as a page, or all of it as a file. */
import { type ExplainedPerson, examinePerson } from '../../views/lookup/person-document.ts';
import { existingKey } from '../../store/audit/signing-key.ts';
import { shortHash } from '../../engine/context/person-identity.ts';
import { dossierOf } from '../../views/dossier/dossier-document.ts';
import { pageOf } from '../../views/dossier/dossier-page.ts';
import { textOf } from '../../views/dossier/signed-dossier.ts';
import { explainedSections, headOf } from '../../views/lookup/person-text.ts';
import { namesOf } from '../../views/lookup/person-names.ts';
import { titledChannel, personIn } from '../view/console-text.ts';
import { forbidden, notOperator } from '../view/form.ts';
import { html, type Html, prose, sectionsHtml } from '../../views/render/html.ts';
import { link, type Page, type PageContent, type PageRequest } from '../view/page.ts';
import { nobody, questionForm, rulesTable, ruleWords } from './person.ts';

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
      const { config } = mirror;
      const names = namesOf(snapshot, user.seesAddresses);
      const shown = { names, addresses: user.seesAddresses, offline: false };
      const { document } = await examinePerson(opened, shell, { config, key, ...shown });
      const title = `${names({ kind: 'contact', key })}, asked now`;
      const body = html`<p>${headOf(document)}. ${linkBack(request)}</p>
        ${sectionsHtml(
          explainedSections(document).filter(({ isFolded }) => !isFolded),
          {},
        )}
        ${(document.channels ?? []).map((channel) => rulesPart(request, document, channel))}`;
      return { title, body };
    });
  },
};

/** The dossier, for those who see addresses: it names the person by theirs. */
export const dossierFile: Page = {
  path: 'people/:id/dossier.html',
  show: (request) => (request.user.seesAddresses ? question(request, 'dossier') : notForViewers),
  async ask({ mirror, user, id }) {
    if (!user.seesAddresses) return notForViewers;
    return mirror.assembled(async (opened, shell) => {
      const { snapshot } = opened.mirror;
      const key = personIn(snapshot, id);
      if (key === undefined) return nobody;
      const { config } = mirror;
      const asked = { key, asOf: null, offline: false };
      const document = await dossierOf(config, { opened, shell }, asked);
      const signing = existingKey(config.audit.keyFile);
      const text = pageOf(document, textOf(document, signing), signing);
      const name = shortHash(snapshot.meta, key).slice(1);
      return { name: `dossier-${name}.html`, type: 'text/html', text };
    });
  },
};

const notForViewers = forbidden('A dossier contains the address of the person');

function question(request: PageRequest, what: 'now' | 'dossier'): PageContent {
  const body = html`${questionForm(request, what)}
    <p>${linkBack(request)}</p>`;
  return { title: 'One person', body };
}

function linkBack(request: PageRequest): Html {
  return link(request, `people/${request.id}`, 'Back to the person');
}

/** Says which rule decided, and shows on demand every rule and gate in order, with what it said. */
function rulesPart(
  request: PageRequest,
  document: ExplainedPerson,
  { channel, tried, gates: asked, by }: NonNullable<ExplainedPerson['channels']>[number],
): Html {
  const said = new Map<string, string>([
    ...tried.map(({ id, matches }) => [id, matches ? 'yes' : 'no'] as const),
    ...asked.map(({ id, held }) => [id, held ? 'yes' : 'no'] as const),
  ]);
  const words = (id: string): Html | string => {
    const word = said.get(id) ?? 'not asked';
    return id === by ? html`<strong>${word}: this decided</strong>` : word;
  };
  return html`<section>
    <h2>Which rule decides: ${titledChannel(request, channel)}</h2>
    <p>${prose(ruleWords(by, goneNow(document)))}</p>
    <details>
      <summary>Every rule in order<span class="hidden">: ${channel}</span></summary>
      ${rulesTable('Now', words)}
    </details>
  </section>`;
}

function goneNow({ crm, snapshot }: ExplainedPerson): string {
  const moved = snapshot?.moved?.to ?? [];
  if (moved.length > 0) return `with another address in the CRM (${moved.join(', ')})`;
  if (crm.records.length === 0) {
    const isNamed = crm.mentions.length > 0;
    return isNamed ? 'in the CRM only by a record that cannot be read' : 'missing from the CRM';
  }
  const isFlagged = crm.records.some(({ presence }) => presence === 'flagged');
  return isFlagged ? 'marked as deleted in the CRM' : 'out of scope (contacts.include)';
}
