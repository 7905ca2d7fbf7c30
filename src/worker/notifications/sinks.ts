/** Creates the sinks that a configuration names. */
import type { Config } from '../../config/config.ts';
import {
  kindOf,
  nameOf,
  type Receiver,
  troubleLevels,
} from '../../config/schema/notices-schema.ts';
import type { Clock } from '../../domain/clock.ts';
import { emailSink } from './email-sink.ts';
import { ntfySink, type Sending, slackSink, teamsSink, webhookSink } from './http-sinks.ts';
import type { Sink } from './sink.ts';

/** Returns the sinks, none if the configuration names none. The caller closes them. */
export function sinksOf({ notices }: Pick<Config, 'notices'>, clock: Clock): Sink[] {
  const { url, secret, to = [] } = notices ?? {};
  const own: Receiver[] =
    url === undefined || secret === undefined
      ? []
      : [{ webhook: { url, secret }, level: 'warning' }];
  return [...own, ...to].map((receiver) => sinkOf(receiver, clock));
}

function sinkOf(receiver: Receiver, clock: Clock): Sink {
  const { level, events, slack, teams, ntfy, email, webhook } = receiver;
  return {
    ...sendingOf(receiver, clock),
    name: nameOf(receiver),
    kind: kindOf(receiver),
    receiver: JSON.stringify({ slack, teams, ntfy, email, webhook }),
    wants: (trouble) =>
      (events === undefined || events.includes(trouble)) &&
      (level === 'warning' || troubleLevels[trouble] === level),
  };
}

function sendingOf({ slack, teams, ntfy, email, webhook }: Receiver, clock: Clock): Sending {
  if (slack) return slackSink(slack, clock);
  if (teams) return teamsSink(teams, clock);
  if (ntfy) return ntfySink(ntfy, clock);
  if (email) return emailSink(email);
  if (webhook) return webhookSink(webhook, clock);
  throw new TypeError('a receiver names its kind');
}
