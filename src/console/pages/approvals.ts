/** Shows what awaits a decision, with its cause, and lets operators approve or reject it. */
import { html, type Page } from '../view/page.ts';
import { personLink } from '../view/person-link.ts';
import { factsOf, isOpen } from './approvals/approval-facts.ts';
import { approvedSection, latelySection, rejectedSection } from './approvals/decided-sections.ts';
import { planSection } from './approvals/plan-section.ts';
import { rehearsalLink } from './rehearsal/rehearsal.ts';

/** The page of what awaits a decision, and of what was decided. */
export const approvalsPage: Page = {
  path: 'approvals',
  nav: 'Approvals',
  async show(request) {
    const seen = await request.mirror.statusAndNext();
    // The page is rendered while the snapshot is open, because links to people are made of it.
    return request.mirror.read(request.user, (read) => {
      const facts = factsOf(read, seen.status);
      const { snapshot } = read;
      const linkOf = (key: string): string => (snapshot ? personLink(request, snapshot, key) : '');
      const open = facts.plans.filter(({ causes }) => causes.some(isOpen));
      const { approvals } = facts;
      const body = html`${approvedSection(request, facts, seen)}
        ${
          open.length === 0
            ? html`<p class="quiet">Nothing awaits a decision.</p>`
            : open.map((plan) => planSection({ request, plan, approvals, linkOf }, seen.status.at))
        }
        ${rejectedSection(request, facts, seen)} ${latelySection(request, facts, seen)}
        <div class="row">${rehearsalLink(request)}</div>`;
      return { title: 'Approvals', body };
    });
  },
};
