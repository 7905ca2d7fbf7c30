/** Lists the pages of a mirror, in the order of the navigation. */
import type { Page } from './view/page.ts';
import { approvalsFile, approvalsPage } from './pages/approvals.ts';
import { auditPage } from './pages/audit.ts';
import { configurationPage } from './pages/configuration.ts';
import { eventsPage } from './pages/events.ts';
import { limitsPage, overviewPage } from './pages/overview.ts';
import { rehearsalPage } from './pages/rehearsal.ts';
import { runPage, runsPage } from './pages/runs.ts';
import { peoplePage } from './pages/people.ts';
import { personFile, personNowPage, personPage } from './pages/person.ts';
import { problemsFile, problemsPage } from './pages/problems.ts';
import { undoPage } from './pages/undo.ts';
import { templatePage, templatePreview, templatesPage } from './pages/templates.ts';

export const pages: readonly Page[] = [
  overviewPage,
  rehearsalPage,
  approvalsPage,
  approvalsFile,
  problemsPage,
  problemsFile,
  peoplePage,
  personPage,
  personNowPage,
  personFile,
  runsPage,
  runPage,
  undoPage,
  limitsPage,
  templatesPage,
  templatePage,
  templatePreview,
  eventsPage,
  auditPage,
  configurationPage,
];
