import { describe, expect, onTestFinished, test } from 'vitest';
import { serve } from '../../src/emulator/http-listener.ts';
import { stage } from '../support/emulator/emulator-stage.ts';
import { KEY, mirrorOn, platformOf } from '../support/commands/mirrored-contacts.ts';

async function emulated(templates: Record<string, object> = {}) {
  const platform = stage({ apiKey: KEY });
  const { url, close } = await serve(platform, 0);
  onTestFinished(close);
  const create = (name: string) =>
    platform.ask(
      'POST /api/template/v1/create',
      { name, subject: 'Hi {{who}}' },
      { 'x-api-key': KEY },
    ).json.id;
  const outbox = () => platform.ask('GET /_emulator/state').json.outbox;
  return { run: mirrorOn(url, templates), create, outbox };
}

const to = ['--to', 'ann@example.org'];

describe('template test', () => {
  test('finds a template by its key in the mirror, whatever its name', async () => {
    const { run, create } = await emulated({ greeting: { name: 'Hello', subject: 'Hi' } });
    create('greeting');
    await run('sync');
    const { code, out } = await run('platform', 'template', 'test', 'greeting', ...to, '--json');
    expect(code).toBe(0);
    const document = JSON.parse(out.join('\n'));
    expect(document).toEqual({
      template: { key: 'greeting', id: expect.any(String) },
      to: 'ann@example.org',
      success: true,
    });
  });

  test('finds a template by its exact name, and sends the given values', async () => {
    const { run, create, outbox } = await emulated();
    create('Letter two');
    const id = create('Letter');
    const values = [
      '--var',
      'who=Ann=Bob',
      'x=',
      '--subject',
      'To {{who}}',
      '--from',
      'b@example.org',
    ];
    const { code, out } = await run('platform', 'template', 'test', 'Letter', ...to, ...values);
    expect({ code, out }).toEqual({ code: 0, out: [`Letter (${id}) to ann@example.org: sent`] });
    expect(outbox()).toMatchObject([
      { to: 'ann@example.org', fromEmail: 'b@example.org', subject: 'To Ann=Bob' },
    ]);
  });

  test('finds one of several templates of the same name by id', async () => {
    const { run, create } = await emulated();
    const ids = [create('Letter'), create('Letter')];
    const { code, err } = await run('platform', 'template', 'test', 'Letter', ...to);
    expect(code).toBe(2);
    expect(err).toContain('2 templates on the platform have the name Letter');
    for (const id of ids) expect(err).toContain(id);
    expect(await run('platform', 'template', 'test', ids[1] ?? '', ...to)).toMatchObject({
      code: 0,
    });
  });

  test.each([
    [['nobody', ...to], 'the mirror has no template nobody, and the platform none of that name'],
    [['welcome'], "required option '--to <address>'"],
    [['welcome', '--to', ' '], '--to: write the address'],
    [['welcome', ...to, '--var', 'who'], '--var "who": write name=value'],
    [['welcome', ...to, '--var', '=x'], '--var "=x": write name=value'],
    [['welcome', ...to, '--var', 'a=1', '--var', 'a=2'], '--var a is given twice'],
  ])('exits with 2 for %j', async (words, message) => {
    const { run } = await emulated();
    const { code, out, err } = await run('platform', 'template', 'test', ...words);
    expect({ code, out }).toEqual({ code: 2, out: [] });
    expect(err).toContain(message);
  });

  test.each([
    [{ body: { success: false } }, { out: [expect.stringContaining('did not say')] }],
    [
      { status: 502, body: { message: 'Bad gateway' } },
      { err: expect.stringMatching(/it may have been done → look into the mailbox/) },
    ],
  ])('exits with 1 after the answer %j, and sends once', async (reply, expected) => {
    const listed = { body: { templates: [{ id: 'tpl_1', name: 'welcome' }], total: 1 } };
    const { url, asked } = await platformOf({
      'GET /api/template/v1/list': listed,
      'POST /api/template/v1/tpl_1/test': reply,
    });
    const ended = await mirrorOn(url)('platform', 'template', 'test', 'welcome', ...to);
    expect(ended).toMatchObject({ code: 1, ...expected });
    expect(asked.filter(({ line }) => line.startsWith('POST'))).toHaveLength(1);
    expect(ended.err).not.toContain('ann@example.org');
  });
});

describe('check', () => {
  const templates = {
    welcome: { fromEmail: 'hello@Example.com' },
    invoice: { fromEmail: 'Billing <billing@example.com>' },
    news: { fromEmail: 'news@news.example.com' },
    product: { fromEmail: 'product@product.example' },
    off: { fromEmail: 'a@off.example' },
    soon: { fromEmail: 'a@soon.example' },
  };
  const domains = [
    { id: 'dom_1', domain: 'example.com', status: 'active', isSendingEmailEnabled: true },
    { id: 'dom_2', domain: 'product.example', status: 'failed', verificationFailedReason: 'No MX' },
    { id: 'dom_3', domain: 'off.example', status: 'active', isSendingEmailEnabled: false },
    { id: 'dom_4', domain: 'soon.example', status: 'verifying' },
  ];
  const reads = { 'GET /api/template/v1/list': { body: { templates: [], total: 0 } } };

  test('prints each sender domain', async () => {
    const { url } = await platformOf({
      ...reads,
      'GET /api/domain/v1/list': { body: { domains } },
    });
    const { code, out } = await mirrorOn(url, templates)('check');
    expect(code).toBe(0);
    expect(out.slice(4)).toEqual([
      'ok   sender domain example.com: sends 2 templates; verified (active)',
      'NOTE sender domain news.example.com: sends 1 template; the platform does not know it → crm-mirror platform domains create news.example.com',
      'NOTE sender domain off.example: sends 1 template; its sending is switched off → switch it on on the platform',
      'NOTE sender domain product.example: sends 1 template; not verified: failed (No MX) → make its DNS records, then crm-mirror platform domains verify product.example',
      'NOTE sender domain soon.example: sends 1 template; not verified yet: the platform is looking at its DNS records',
    ]);
  });

  test('is not failed by unreadable domains', async () => {
    const refused = { status: 403, body: { message: 'Unauthorized access' } };
    const { url } = await platformOf({ ...reads, 'GET /api/domain/v1/list': refused });
    const { code, out } = await mirrorOn(url, templates)('check', '--json');
    expect(code).toBe(0);
    const { ok, findings } = JSON.parse(out.join('\n'));
    expect(ok).toBe(true);
    expect(findings.at(-1)).toMatchObject({ what: 'sender domains', ok: true, level: 'note' });
  });

  test.each([
    [{ a: { content: ['Hi {{name}}'] } }, 'a ({{name}})', '1 template uses'],
    [
      {
        a: { subject: '{{name}}', content: ['{{{ city }}} {{name}}'] },
        b: { previewText: '{{c}}' },
      },
      'a ({{name}}, {{city}}), b ({{c}})',
      '2 templates use',
    ],
  ])('lists files that use variables and declare none: %j', async (files, list, said) => {
    const { url } = await platformOf(reads);
    const { code, out } = await mirrorOn(url, files)('check');
    expect(code).toBe(0);
    const found = out.filter((line) => line.startsWith('NOTE variables'));
    expect(found).toEqual([expect.stringContaining(list)]);
    expect(found[0]).toContain(said);
  });
});
