/** Says which rule decided the last changes of a person, and lists all rules on demand. */
import { gates } from '../../../records/contact/consent/gates.ts';
import { rules } from '../../../records/contact/consent/rules.ts';
import type { EntryDocument } from '../../../views/audit/entry-document.ts';
import { channelName } from '../../view/channel-name.ts';
import { html, type Html, type PageRequest, prose, timeOf } from '../../view/page.ts';
import { rulesTable } from './rules-table.ts';

const anyGone = 'missing from the CRM, flagged as deleted, or out of scope';

/** Returns the words of a rule; `gone` says which of the ways to be gone from the CRM applies. */
export function ruleWords(id: string, gone: string | undefined): string {
  const rule = [...rules, ...gates].find((one) => one.id === id);
  const asks = rule?.asks ?? id;
  return gone === undefined ? asks : asks.replace(anyGone, gone);
}

/** Returns how a person is gone from the CRM, as a write states it; undefined if it does not. */
function goneIn({ says }: EntryDocument, movedTo: readonly string[]): string | undefined {
  if (movedTo.length > 0 && says === 'gone') {
    return `with another address in the CRM (${movedTo.join(', ')})`;
  }
  if (says === 'gone') return 'missing from the CRM';
  return says === 'deleted' ? 'marked as deleted in the CRM' : undefined;
}

interface RulesFacts {
  entries: readonly EntryDocument[];
  movedTo: readonly string[];
}

/** Says which rule decided the last change of each channel; all rules are folded. */
export function rulesSection(request: PageRequest, { entries, movedTo }: RulesFacts): Html {
  const last = new Map(
    entries
      .filter(({ type }) => type === 'write')
      .map((entry) => [String(entry['part']), entry] as const),
  );
  const decided = Map.groupBy(last.values(), (entry) => String(entry['rule']));
  const where = ({ part }: EntryDocument): string =>
    part === '' ? 'the whole record' : channelName(request, String(part));
  const said = (id: string): Html | '' => {
    const writes = decided.get(id) ?? [];
    if (writes.length === 0) return '';
    return html`<strong
      >${writes.map((write) => html`${where(write)}, ${timeOf(write.at)} `)}</strong
    >`;
  };
  return html`<section>
    <h2>Which rule decided our last change</h2>
    <p class="quiet">
      What the person did on the platform is no change of this mirror: it stands below, in what
      happened.
    </p>
    <ul>
      ${[...last.values()].map((write) => {
        const id = String(write['rule']);
        const rule = rules.find((one) => one.id === id);
        return html`<li>
          <strong>${where(write)}</strong>, ${timeOf(write.at)}:
          ${prose(ruleWords(id, goneIn(write, movedTo)))}
          ${rule === undefined ? '' : html`<small class="quiet">(rule ${rule.row})</small>`}
        </li>`;
      })}
    </ul>
    ${decided.size === 0 ? html`<p class="quiet">The audit log has no change of this person.</p>` : ''}
    <details>
      <summary>All rules in order</summary>
      <p class="quiet">
        The first rule that matches decides about a channel; then the gates are asked. “Ask CRM and
        platform now” shows what each says today.
      </p>
      ${rulesTable('Decided the last change of', said)}
    </details>
  </section>`;
}
