/** Where a worker tells what is wrong, as it is configured. */
import { afterAll, expect, it } from 'vitest';
import { makeFolder, minimal } from '../support/config/config-folder.ts';

const { load, mistakes, remove } = makeFolder();
afterAll(remove);

const block = (url: string, secret: string): string =>
  minimal(`notices: { url: '${url}', secret: '${secret}' }`);
const good = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

it('is absent unless it is configured', () => {
  expect(load(minimal()).notices).toBeUndefined();
});

it.each(['https://x.example/hook?to=ops', 'http://127.0.0.1:9/x', 'http://localhost/'])(
  'takes %s',
  (url) => expect(load(block(url, good)).notices).toEqual({ url, secret: good }),
);

it.each([
  ['http://x.example/', good, 'notices.url  would send it unencrypted  → use https'],
  ['ftp://x.example/', good, 'notices.url  is no web address  → write https://HOST/PATH'],
  ['https://ann:pw@x.example/', good, 'notices.url  is no web address  → write https://HOST/PATH'],
  [
    'https://x.example/',
    'not base64!',
    'notices.secret  is empty or holds what a header cannot carry  → write the key alone',
  ],
  [
    'https://x.example/',
    'whsec_?',
    'notices.secret  is no secret of Standard Webhooks' +
      '  → write whsec_ and then base64 (openssl rand -base64 32)',
  ],
])('refuses %s with %s', (url, secret, line) => {
  const found = mistakes(block(url, secret))?.map((text) => text.replace(/^\S+ {2}/, ''));
  expect(found?.[0]).toBe(line);
});
