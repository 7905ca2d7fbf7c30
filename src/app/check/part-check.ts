/** Checks one record type: its source, its values, and its side of the platform. */
import type { Config } from '../../config/config.ts';
import { isDecisiveOption } from '../../domain/values/decisive-options.ts';
import { renderProblem } from '../../domain/errors.ts';
import { sayUnknown, type UnknownWords } from '../../domain/unknown-words.ts';
import type { MirrorPart } from '../../engine/context/mirror-context.ts';
import { sayMissing } from '../../engine/read/source-read.ts';
import { systemClock } from '../../http/system-clock.ts';
import type { DesiredRow } from '../../domain/record.ts';
import { undeclaredIn, decodeTemplate } from '../../records/template/template-state.ts';
import { mappedColumns } from '../../records/contact/observe/column-meanings.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { Shell } from '../../compose/process-shell.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { cell } from '../../compose/output/visible-text.ts';
import { countSender, type Senders } from '../../views/status/sender-domains.ts';
import { type Finding, look } from './finding.ts';
import { checkPlatform } from './platform-check.ts';
import { checkSource, type SourceCheck } from './source-check.ts';
import { findUnmanaged, type UnmanagedCheck } from './unmanaged-check.ts';
import { tellUnused } from './unused-opt-outs.ts';

/** What was found about one record type. */
export interface CheckedPart {
  kind: 'contact' | 'template';
  findings: readonly Finding[];
  /** Undefined if the source could not be read. */
  source: SourceCheck | undefined;
  /** The people found who are gone from the CRM and subscribed without the mirror. */
  unmanaged: UnmanagedCheck['counts'] | null;
}

interface Surroundings {
  config: Config;
  /** The snapshot; an empty one if none exists yet. */
  snapshot: Snapshot;
  shell: Shell;
  /** Receives the senders of templates. */
  senders: Senders;
  asTheyAre: boolean;
}

/** Checks one record type. */
export async function checkPart(part: MirrorPart, around: Surroundings): Promise<CheckedPart> {
  const { type } = part;
  const { config, snapshot, shell, senders } = around;
  const isContact = type.name === 'contact';
  const columns =
    isContact && config.contacts ? mappedColumns(config.contacts, systemClock.now) : [];
  let source: SourceCheck | undefined;
  const loose: LooseTemplate[] = [];
  let goneCount = 0;
  const read = await look(`source of ${type.name}s`, async () => {
    const each = (row: DesiredRow): void => {
      countSender(senders, row);
      if (isContact && row.presence !== 'present' && !row.invalid) goneCount += 1;
      loose.push(...looseIn(row));
    };
    source = await checkSource({ part, columns, snapshot, shell, each });
    return source.found;
  });
  const valued = source ? valueFindings(source, type.name, around) : [];
  const findings = [read, ...valued, ...tellLoose(loose)];
  let channels: Finding[] = [];
  let unmanaged: UnmanagedCheck | undefined;
  const answer = await look(`platform's ${type.name}s`, async () => {
    const { url } = config.platform;
    const checked = await checkPlatform({ type, url, snapshot, signal: shell.stop });
    channels = checked.channels.map((one) => ({ what: 'channels', ...one, invalidInput: false }));
    if (goneCount > 0 && source) {
      const asked = { type, snapshot, first: checked.page, signal: shell.stop };
      unmanaged = await findUnmanaged(asked);
    }
    return checked.answers;
  });
  const more = [...channels, ...(unmanaged?.findings ?? [])];
  const { counts = null } = unmanaged ?? {};
  return { kind: type.name, findings: [...findings, answer, ...more], source, unmanaged: counts };
}

function valueFindings(
  source: SourceCheck,
  kind: CheckedPart['kind'],
  around: Surroundings,
): Finding[] {
  return [
    ...source.unknown.map((words) => tellUnknown(words, around.asTheyAre)),
    ...sayMissing(around.snapshot, kind, source.counts).map(({ reason, fix }) =>
      note('people who are missing', renderProblem({ reason, fix })),
    ),
    ...tellGarbled(source, around.config),
    ...tellUnused(source.unusedOptOuts),
  ];
}

function tellUnknown(words: UnknownWords, asTheyAre: boolean): Finding {
  const { option: what, fix } = words;
  // There an unknown word may mean deleted or opted out.
  const level = isDecisiveOption(what) ? 'fail' : 'note';
  const found = renderProblem({ reason: sayUnknown(words, { asTheyAre }), fix });
  return { what, level, found, invalidInput: false };
}

/** Points out that a UTF-8 file seems to be read in another encoding. */
function tellGarbled({ garbled }: SourceCheck, { contacts }: Config): Finding[] {
  const source = contacts?.source;
  const isOther = source && 'encoding' in source && source.encoding === 'windows-1252';
  if (garbled === 0 || !isOther) return [];
  const hold = garbled === 1 ? 'holds' : 'hold';
  const reason = `${counted(garbled, 'record')} ${hold} text such as "Ã¤" in place of "ä", as a UTF-8 file has when it is read as windows-1252`;
  return [note('encoding', renderProblem({ reason, fix: 'set encoding: utf-8 in the source' }))];
}

/** A template that uses variables and declares none. */
interface LooseTemplate {
  key: string;
  variables: readonly string[];
}

function looseIn(row: DesiredRow): LooseTemplate[] {
  if (row.kind !== 'template' || row.invalid) return [];
  const fields = decodeTemplate.desired(row).value;
  const variables = fields.variables ? [] : undeclaredIn(fields);
  return variables.length === 0 ? [] : [{ key: row.id, variables }];
}

const mostShown = 5;

/** Points out variables of files that declare none, which a run therefore does not check. */
function tellLoose(loose: readonly LooseTemplate[]): Finding[] {
  if (loose.length === 0) return [];
  const some = loose.slice(0, mostShown).map(({ key, variables }) => {
    const names = variables.slice(0, mostShown).map((name) => `{{${cell(name)}}}`);
    const more = variables.length > mostShown ? ' and more' : '';
    return `${cell(key)} (${names.join(', ')}${more})`;
  });
  const rest = loose.length > mostShown ? ` and ${withCommas(loose.length - mostShown)} more` : '';
  const verb =
    loose.length === 1 ? 'uses variables and declares none' : 'use variables and declare none';
  const reason = `${counted(loose.length, 'template')} ${verb}: ${some.join(', ')}${rest}`;
  const fix = 'declare them in variables, so that a misspelt one is found before it is sent';
  return [note('variables', renderProblem({ reason, fix }))];
}

function note(what: string, found: string): Finding {
  return { what, level: 'note', found, invalidInput: false };
}
