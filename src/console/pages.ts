/** Lists the pages of a mirror, in the order of the navigation. */
import type { Page } from './view/page.ts';
import { approvalsPage } from './pages/approvals.ts';
import { approvalsFile } from './pages/approvals/approvals-file.ts';
import { auditPage } from './pages/audit.ts';
import { configurationPage } from './pages/configuration.ts';
import { eventsPage } from './pages/events.ts';
import { limitsPage } from './pages/limits.ts';
import { overviewPage } from './pages/overview.ts';
import { rehearsalPage } from './pages/rehearsal/rehearsal.ts';
import { runPage } from './pages/run.ts';
import { runsPage } from './pages/runs.ts';
import { peoplePage } from './pages/people.ts';
import { dossierFile, personNowPage } from './pages/person/person-now.ts';
import { personPage } from './pages/person/person.ts';
import { problemsFile, problemsPage } from './pages/problems.ts';
import { undoPage } from './pages/undo/undo.ts';
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
  dossierFile,
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
