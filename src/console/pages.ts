/** Lists the pages of a mirror, in the order of the navigation. */
import type { Page } from './view/page.ts';
import { approvalsPage } from './pages/approvals.ts';
import { overviewPage } from './pages/overview.ts';
import { runPage } from './pages/run.ts';
import { runsPage } from './pages/runs.ts';

export const pages: readonly Page[] = [overviewPage, runsPage, runPage, approvalsPage];
