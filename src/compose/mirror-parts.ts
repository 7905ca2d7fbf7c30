/** Builds the record types of a mirror with their sources, and their rules. */
import { hash } from 'node:crypto';
import type { Config } from '../config/config.ts';
import type { MirrorPart } from '../engine/context/mirror-context.ts';
import { systemClock } from '../http/system-clock.ts';
import type { Clock, Platform } from '../platform/platform.ts';
import type { AbsenceRules } from '../records/contact/consent/absent-people.ts';
import { contactType } from '../records/contact/contact-type.ts';
import { templateType } from '../records/template/template-type.ts';
import type { Source } from '../sources/source.ts';
import { loadMap } from './mapping-module.ts';
import type { Sources } from './source-registry.ts';

/** What stands in for the clock of this machine and for the sources. */
export interface ReadingStandIns {
  clock: Clock;
  /** Returns what to read instead of a source; `name` is the same for equal sources. */
  sourceFor(name: string, source: Source): Source;
}

/** Returns the rules for people who are missing from the CRM: how long to wait, what to do. */
export function absenceRulesOf({ guards, policy }: Config): AbsenceRules {
  const { absentReadings, absentForMs } = guards;
  const { deletes, deleteAfterMs } = policy;
  return { absentReadings, absentForMs, deletes, deleteAfterMs };
}

/** Returns the record types of the mirror with their sources. */
export function partsOf(
  config: Config,
  {
    platform,
    sources,
    standIns,
  }: { platform: Platform; sources: Sources; standIns?: ReadingStandIns | undefined },
): MirrorPart[] {
  const { contacts, templates, policy } = config;
  const { sourceFor = (_: string, source: Source) => source } = standIns ?? {};
  const parts: MirrorPart[] = [];
  if (contacts && sources.contacts) {
    const absence = absenceRulesOf(config);
    const { now } = standIns?.clock ?? systemClock;
    const { contacts: people } = platform;
    const type = contactType({ fields: contacts, policy, absence, platform: people, now });
    const { source, id, unsubscribed, channels, map } = contacts;
    const optOuts = channels.flatMap(({ subscription: stated }) =>
      typeof stated === 'object' && 'optOut' in stated ? [stated] : [],
    );
    const name = JSON.stringify([source, id, unsubscribed, optOuts, map]);
    const read = sourceFor(name, sources.contacts());
    // All settings that affect how a record is read, with the code of the mapping.
    const manner = { ...contacts, map: map === undefined ? undefined : loadMap(map).hash };
    parts.push({ type, source: read, manner: hash('sha256', JSON.stringify(manner)).slice(0, 16) });
  }
  if (templates && sources.templates) {
    const testTo = templates.canary?.to;
    const type = templateType({ policy, platform: platform.templates, testTo });
    const source = sourceFor(JSON.stringify(templates.source), sources.templates());
    parts.push({ type, source });
  }
  return parts;
}
