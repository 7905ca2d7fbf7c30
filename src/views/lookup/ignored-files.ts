/** Tells which files in a directory of templates are no templates. */
import type { Config } from '../../config/config.ts';
import { listIgnored } from '../../sources/directory/directory-listing.ts';
import { counted } from '../../domain/values/counted.ts';

const mostNamed = 3;

/** Returns a sentence about the ignored files, or undefined if there are none. */
export async function ignoredWords({ templates }: Config): Promise<string | undefined> {
  if (templates?.source.type !== 'directory') return undefined;
  const names = await listIgnored(templates.source.path).catch(() => []);
  if (names.length === 0) return undefined;
  const shown = names.slice(0, mostNamed).join(', ');
  const more = names.length > mostNamed ? ' …' : '';
  const files = counted(names.length, 'file');
  return `${files} in the folder of templates ignored (${shown}${more}): a template is .json, .yaml or a folder with template.yaml`;
}
