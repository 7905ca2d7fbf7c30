/** Judges by the last response of a list whether the list goes on. */
import { counted } from '../../domain/values/counted.ts';
import type { Flaw } from '../shared/read-certificate.ts';
import type { Sign } from './more-signs.ts';
import type { HttpOptions } from './options.ts';
import { howToReadOn } from './page-setting.ts';
import type { ReadPage } from './paging.ts';

interface Reading {
  /** The number of pages read, the last one included. */
  number: number;
  options: Pick<HttpOptions, 'url' | 'page'>;
}

/** Returns the flaw of a list whose last page says that there is more. */
export function unfinished(page: ReadPage, { number, options }: Reading): Flaw | undefined {
  const { size, fresh, signs } = page;
  // A page that came again says what it said before.
  if (size > 0 && fresh === 0) return undefined;
  const sign = signs.more && countsAsMore(signs.more, page, options) ? signs.more : undefined;
  const isShort = signs.pages !== undefined && signs.pages.count > number;
  if (!sign && !isShort) return undefined;
  const read = `${signs.pages?.path} is ${signs.pages?.count}, and ${counted(number, 'page')} came`;
  const why = `the answer says that more pages follow: ${sign?.says ?? read}`;
  return { why, fix: howToReadOn(options, sign) };
}

/** Returns whether a sign is not of the paging itself: its cursor, or a number that counts on. */
function countsAsMore(
  { path, place, isFlag }: Sign,
  { size }: ReadPage,
  { page }: Reading['options'],
): boolean {
  if (isFlag) return true;
  if (page?.cursor !== undefined && `${page.cursor}.`.startsWith(`${path}.`)) return false;
  return !(page?.number !== undefined && size === 0 && /^\d+$/.test(place?.text ?? ''));
}
