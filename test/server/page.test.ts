import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { pagePolicy, renderPage, type MirrorStatus } from '../../src/server/status-page.ts';

const status = (mirror: string, attention: MirrorStatus['attention'] = []): MirrorStatus => ({
  mirror,
  at: '2026-08-06T03:00:00Z',
  attention,
  calm: 'nothing needs attention',
  rows: [['last complete run', '3 h ago']],
});

test('the page shows what needs attention first, with its fix', () => {
  const page = renderPage([
    status('acme'),
    status('globex', [{ text: 'paused since yesterday', fix: '`crm-mirror resume` ends it' }]),
  ]);
  const places = ['globex', 'paused since yesterday', '`crm-mirror resume`', 'acme'];
  const found = places.map((text) => page.indexOf(text));
  expect(found).toEqual(found.toSorted((a, b) => a - b));
  expect(found[0]).toBeGreaterThan(0);
  expect(page).toContain('<title>crm-mirror: 1 to look at</title>');
  expect(renderPage([status('acme')])).toContain('nothing needs attention');
  expect(renderPage([])).toContain('all is well');
});

test('the page shows a message as text, whatever it contains', () => {
  const evil = `<script>alert("1")</script><img src=x onerror='x'>&`;
  const page = renderPage([
    {
      mirror: evil,
      at: evil,
      attention: [{ text: evil, fix: evil }],
      calm: evil,
      rows: [[evil, evil], []],
    },
    { mirror: evil, at: evil, attention: [], calm: evil, rows: [] },
  ]);
  expect(page).not.toMatch(/<script|<img|onerror='/);
  expect(page).toContain('&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;');
});

test('the page reloads itself, loads nothing, and has one allowed style', () => {
  const page = renderPage([status('acme')]);
  expect(page).toContain('<meta http-equiv="refresh" content="15">');
  const style = /<style>(.*)<\/style>/s.exec(page)?.[1] ?? '';
  const hash = createHash('sha256').update(style).digest('base64');
  expect(pagePolicy).toContain(`default-src 'none'; style-src 'sha256-${hash}'`);
  expect(page).not.toMatch(/https?:|<script|style="|src=/);
});
