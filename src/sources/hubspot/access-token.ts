/** The token of a HubSpot account, as the configuration gives it or a file has it. */
import { Invalid } from '../../domain/errors.ts';
import { smallText } from '../shared/files/file-bytes.ts';
import { isToken, type HubspotOptions } from './options.ts';

/** Read anew each time, so that a token may be changed at any time. */
export async function tokenOf({
  token = '',
  tokenFile,
}: Pick<HubspotOptions, 'token' | 'tokenFile'>): Promise<string> {
  if (tokenFile === undefined) return token;
  const text = smallText(tokenFile);
  if (isToken(text.trim())) return text.trim();
  throw new Invalid(`${tokenFile}: the file of the token holds no token → write it alone into it`);
}
