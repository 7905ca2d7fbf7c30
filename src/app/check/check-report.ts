/**
 * Counts the values of the columns and keeps a few people while a source is read, renders the
 * result of `check`, and builds its document for --json.
 */
import type { Snapshot } from '../../store/snapshot.ts';
import type { Names } from '../../views/lookup/person-names.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { type Line, lineOf, styled } from '../../compose/output/text-style.ts';
import type { Finding } from './finding.ts';
import type { SourceCheck } from './source-check.ts';
import type { CheckedPart } from './part-check.ts';
import { columnDocument, renderColumns, renderPeople } from './mapped-columns.ts';

interface CheckReport {
  mirror: string;
  findings: readonly Finding[];
  parts: readonly CheckedPart[];
  /** The snapshot with the staged reading. */
  snapshot: Snapshot;
  names: Names;
  /** Whether values and addresses of people may be shown. */
  asTheyAre: boolean;
}

const marks = {
  ok: 'ok  ',
  note: styled('yellow', 'NOTE'),
  fail: styled('red', 'FAIL'),
};

/** Renders the findings, then the columns and people of the contacts. */
export function renderCheck(report: CheckReport): Line[] {
  const lines = report.findings.map(({ what, level, found }) =>
    lineOf(marks[level], ` ${what}: ${found}`),
  );
  const source = report.parts.find(({ kind }) => kind === 'contact')?.source;
  if (!source) return lines;
  const { counts, columns, people } = source;
  const sample = people.sample(report.snapshot, report.names, report.asTheyAre);
  const { records, desired, skipped, invalid, duplicates } = counts;
  const { ids, sharedIds, keys } = duplicates;
  const addresses = keys === 1 ? '1 address has' : `${withCommas(keys)} addresses have`;
  return [
    ...lines,
    ...renderColumns(columns, report.asTheyAre),
    ...renderPeople(sample, skipped),
    '',
    `${counted(records, 'record')} · people ${withCommas(desired)} · skipped ${withCommas(skipped)} · invalid ${withCommas(invalid)}`,
    ...(keys > 0 ? [`${addresses} several records: the strictest statement counts`] : []),
    ...(ids > 0
      ? [`${counted(ids, 'id')} ${ids === 1 ? 'occurs' : 'occur'} more than once, with one address`]
      : []),
    ...(sharedIds > 0
      ? [
          `${counted(sharedIds, 'id')} ${sharedIds === 1 ? 'has' : 'have'} several addresses: those records are invalid`,
        ]
      : []),
  ];
}

/** Returns the document for --json. */
export function documentOf(report: CheckReport) {
  const { mirror, findings, parts, snapshot, names, asTheyAre } = report;
  const shown = findings.map(({ what, level, found }) => {
    return { what, ok: level !== 'fail', level, found };
  });
  const contacts = parts.find(({ kind }) => kind === 'contact')?.source;
  const templates = parts.find(({ kind }) => kind === 'template')?.source;
  const sample = contacts?.people.sample(snapshot, names, asTheyAre);
  return {
    mirror,
    ok: findings.every(({ level }) => level !== 'fail'),
    findings: shown,
    contacts: contacts ? countsDocument(contacts.counts) : null,
    templates: templates ? countsDocument(templates.counts) : null,
    /** Null if the CRM has nobody as deleted or out of scope. */
    unmanaged: parts.find(({ kind }) => kind === 'contact')?.unmanaged ?? null,
    columns: contacts ? columnDocument(contacts.columns, asTheyAre) : [],
    people: sample?.people ?? [],
    skipped: sample?.skipped ?? [],
  };
}

function countsDocument({ duplicates, ...counts }: SourceCheck['counts']) {
  return {
    ...counts,
    duplicateIds: duplicates.ids,
    sharedIds: duplicates.sharedIds,
    duplicateKeys: duplicates.keys,
  };
}
