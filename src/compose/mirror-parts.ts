/** Builds the people and the templates of a mirror with their sources, and their rules. */
import { hash } from 'node:crypto';
import type { Config } from '../config/config.ts';
import type { Mirror } from '../engine/context/mirror-context.ts';
import { systemClock } from '../http/system-clock.ts';
import type { Clock, Platform } from '../platform/platform.ts';
import type { AbsenceRules } from '../records/contact/consent/absent-people.ts';
import { connectContacts } from '../records/contact/contacts.ts';
import { connectTemplates } from '../records/template/templates.ts';
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

/** Connects the people and the templates of a mirror with their sources and the platform. */
export function connectRecords(
  config: Config,
  {
    platform,
    sources,
    standIns,
  }: { platform: Platform; sources: Sources; standIns?: ReadingStandIns | undefined },
): Pick<Mirror, 'contacts' | 'templates'> {
  const { contacts, templates, policy } = config;
  const { sourceFor = (_: string, source: Source) => source } = standIns ?? {};
  const connected: Pick<Mirror, 'contacts' | 'templates'> = {};
  if (contacts && sources.contacts) {
    const absence = absenceRulesOf(config);
    const { now } = standIns?.clock ?? systemClock;
    const options = { fields: contacts, policy, absence, platform: platform.contacts, now };
    const { source, id, unsubscribed, channels, map } = contacts;
    const optOuts = channels.flatMap(({ subscription: stated }) =>
      typeof stated === 'object' && 'optOut' in stated ? [stated] : [],
    );
    const name = JSON.stringify([source, id, unsubscribed, optOuts, map]);
    // All settings that affect how a record is read, with the code of the mapping.
    const read = { ...contacts, map: map === undefined ? undefined : loadMap(map).hash };
    connected.contacts = {
      ...connectContacts(options),
      source: sourceFor(name, sources.contacts()),
      manner: hash('sha256', JSON.stringify(read)).slice(0, 16),
    };
  }
  if (templates && sources.templates) {
    const testTo = templates.canary?.to;
    connected.templates = {
      ...connectTemplates({ policy, platform: platform.templates, testTo }),
      source: sourceFor(JSON.stringify(templates.source), sources.templates()),
    };
  }
  return connected;
}
