/** Checks that the platform answers, and that it has the configured channels. */
import { renderProblem } from '../../domain/errors.ts';
import { factsIn } from '../../engine/context/platform-knowledge.ts';
import type { RecordType, Page } from '../../records/record-type.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import type { Found } from './finding.ts';

/** The platform, as one record type sees it. */
export interface PlatformToCheck {
  type: RecordType;
  url: string;
  snapshot: Snapshot;
  signal: AbortSignal;
}

/** The result: whether it answers, and what is known about the channels. */
export interface PlatformCheck {
  answers: Found;
  /** A finding about the configured channels that no contact names, if there are any. */
  channels: Found[];
  /** The first page of the listing. */
  page: Page;
}

/** The number of contacts on a page. */
export const pageSize = 100;

/** Requests one page of the listing. Throws the errors of the request. */
export async function checkPlatform(of: PlatformToCheck): Promise<PlatformCheck> {
  const { type, url, signal } = of;
  const parts = type.capabilities.channels;
  const page = await type.list({ page: 1, limit: parts ? pageSize : 1 }, signal);
  const total = withCommas(page.total);
  const answers: Found = { level: 'ok', found: `${url} answers and knows ${total}` };
  if (!parts) return { answers, channels: [], page };
  const named = new Set([...(page.parts?.names ?? []), ...page.rows.flatMap(parts.shown)]);
  const missing = parts.names.filter((name) => !named.has(name));
  const channels = missing.length === 0 ? [] : [missingChannels(missing, page, of)];
  return { answers, channels, page };
}

/**
 * Says what is known about channels that no listed contact names. A platform whose contacts name
 * every channel does not have them. One whose contacts name only their own may have them.
 */
function missingChannels(names: string[], page: Page, { snapshot }: PlatformToCheck): Found {
  const { rows, parts } = page;
  const { namesAll } = factsIn(snapshot);
  const listed = counted(rows.length, 'contact');
  const them = names.join(', ');
  if (parts === undefined || parts.names.length === 0) {
    const why = rows.length === 0 ? 'it has no contacts yet' : 'its contacts name none';
    const found = `whether the platform has ${them} is not known, because ${why}: the first enrolments show it`;
    return { level: 'note', found };
  }
  const isAlike = !parts.differ && rows.length > 1 && parts.names.length > 1;
  if (namesAll === true || (namesAll === undefined && isAlike)) {
    const others = parts.names.join(', ');
    const reason = `the platform has no ${them}; ${listed} there ${rows.length === 1 ? 'names' : 'name'} ${others}`;
    const fix = 'correct the ids in contacts.channels, or make the channels on the platform';
    return { level: 'fail', found: renderProblem({ reason, fix }) };
  }
  const reason = `none of ${listed} names ${them}, so it is not known whether the platform has it`;
  return {
    level: 'note',
    found: renderProblem({ reason, fix: 'compare the ids on the platform' }),
  };
}
