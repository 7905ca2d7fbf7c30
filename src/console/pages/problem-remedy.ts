/** Says what to do about a problem, and where: in the CRM, or in the configuration. */
import { basename } from 'node:path';
import { z } from 'zod';
import type { Config } from '../../config/config.ts';
import type { ShownGroup } from '../../compose/output/problem-groups.ts';
import { channelName } from '../view/channel-name.ts';
import { consoleText } from '../view/console-text.ts';
import { html, type Html, type PageRequest, prose } from '../view/page.ts';

type Group = Pick<ShownGroup, 'cause' | 'values' | 'fix'> & { option: string | undefined };

/** Returns what to do; '' if nothing is known. */
export function remedyOf(request: PageRequest, { cause, values, fix, option }: Group): Html | '' {
  if (cause !== 'unknown-word' || option === undefined) {
    return fix === '' ? '' : consoleText(request, fix);
  }
  const [value, ...more] = values;
  const known = wordsOf(request.mirror.config, option);
  const which = value === undefined || more.length > 0 ? 'these values' : `“${value.value}”`;
  const [one, other] = known;
  return html`In the CRM, change ${which} to “${one}” or “${other}”; or the person who maintains
  ${basename(request.mirror.config.file)} says what it means (${prose(`\`${fix}\``)}).`;
}

const notAnAddress = /^"([^"]*)" is not an email address/;
const inColumn = 'The column "$1" holds something that is not an address';

/** Returns the reason, with the channel in words where an option of the configuration stands. */
export function saidOf(request: PageRequest, reason: string, option: string | undefined): string {
  if (option === undefined) return reason.replace(notAnAddress, inColumn);
  const at = /^contacts\.channels\[(\d+)\]/.exec(option)?.[1];
  const id = request.mirror.config.contacts?.channels[Number(at)]?.id;
  const what = id === undefined ? option : `${channelName(request, id)} (\`${option}\`)`;
  return reason.replace(`${option}: `, () => `${what}: `);
}

const list = z.union([z.string(), z.array(z.string())]).optional();
const stated = z.object({ in: list, out: list, yes: list, no: list });
const folder = z.record(z.string(), z.unknown()).or(z.array(z.unknown()));

/** Returns a word for yes and one for no, as the configuration names them or as they always are. */
function wordsOf(config: Config, option: string): [yes: string, no: string] {
  let at: unknown = config;
  for (const step of option.split(/[.[\]]+/).filter((part) => part !== '')) {
    const inside = folder.safeParse(at);
    at = inside.success
      ? Object.entries(inside.data).find(([name]) => name === step)?.[1]
      : undefined;
  }
  const own = stated.safeParse(at);
  const first = (words: z.infer<typeof list>): string | undefined => [words ?? []].flat()[0];
  if (!own.success) return ['yes', 'no'];
  const { in: into, out, yes, no } = own.data;
  return [first(into ?? yes) ?? 'yes', first(out ?? no) ?? 'no'];
}
