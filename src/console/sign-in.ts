/** Signs users of the console in and out. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { isSame } from './access/access-check.ts';
import { addressOf, type SignInAttempts } from './access/sign-in-attempts.ts';
import { formOf } from './view/form-values.ts';
import { html } from './view/page.ts';
import { sendPage } from './view/send-page.ts';
import { isPassword } from './access/password-hash.ts';
import { type AccessRules, passwordMark } from './access/visitor.ts';

const given = z.object({
  name: z.string().max(200).default(''),
  password: z.string().max(1000).default(''),
  to: z.string().max(2000).catch('/').default('/'),
});
const query = z.object({
  to: z.string().catch('/').default('/'),
  key: z.string().catch('').default(''),
});

/** Adds the routes to sign in, by a password or by the link of `crm-mirror console`, and out. */
export function serveSignIn(
  scope: FastifyInstance,
  rules: AccessRules,
  attempts: SignInAttempts,
): void {
  const attempt = (request: FastifyRequest, account: string) =>
    attempts.begin(account, addressOf(request, rules.proxies));
  scope.get('/sign-in', async (request, reply) => {
    const { to, key } = query.parse(request.query);
    const { link } = rules;
    if (link && key !== '') {
      const begun = attempt(request, '');
      if (!begun) return showForm(request, reply, { to, code: 429 });
      if (!isSame(key, link.key)) return showForm(request, reply, { to, code: 200 });
      begun.succeed();
      return begin(request, reply, { name: link.user.name, isByLink: true, mark: '', to });
    }
    return showForm(request, reply, { to, code: 200 });
  });
  scope.post('/sign-in', async (request, reply) => {
    const { name, password, to } = formOf(request, given);
    if (!isFromHere(request)) return showForm(request, reply, { to, code: 403 });
    const begun = attempt(request, name);
    if (!begun) return showForm(request, reply, { to, code: 429 });
    const known = rules.users?.find(name);
    const isRight = await isPassword(password, known?.password);
    if (!known || !isRight) return showForm(request, reply, { to, code: 401 });
    begun.succeed();
    return begin(request, reply, { name, isByLink: false, mark: passwordMark(known), to });
  });
  scope.post('/sign-out', { preHandler: scope.csrfProtection }, async (request, reply) => {
    await request.session.destroy();
    return reply.redirect('/', 303);
  });
}

interface Begun {
  name: string;
  isByLink: boolean;
  mark: string;
  to: string;
}

async function begin(request: FastifyRequest, reply: FastifyReply, { to, ...user }: Begun) {
  await request.session.regenerate();
  request.session.set('user', user);
  return reply.redirect(pathOf(to), 303);
}

/** Returns a path on this server, as a header can carry it; the start page for anything else. */
export function pathOf(to: string): string {
  if (!/^\/(?![/\\])[^\\\p{Cc}]*$/u.test(to)) return '/';
  return to.toWellFormed().replaceAll(/[^\x21-\x7e]+/g, encodeURIComponent);
}

/** Returns whether a page of this server sends the form, as far as the browser says. */
function isFromHere({ headers }: FastifyRequest): boolean {
  const { origin, host } = headers;
  return origin === undefined || URL.parse(origin)?.host === host;
}

const reasons = {
  401: 'Name or password is wrong.',
  403: 'Another site has sent this form.',
  429: 'Too many attempts have failed. Wait a few minutes, then try again.',
} as const;

async function showForm(
  request: FastifyRequest,
  reply: FastifyReply,
  { to, code }: { to: string; code: 200 | keyof typeof reasons },
): Promise<void> {
  const wrong = code === 200 ? '' : html`<p class="flash bad" role="alert">${reasons[code]}</p>`;
  const body = html`${wrong}
    <form class="sign-in" method="post" action="/sign-in">
      <input type="hidden" name="to" value="${pathOf(to)}" />
      <label>Name <input name="name" autocomplete="username" required autofocus /></label>
      <label
        >Password
        <input name="password" type="password" autocomplete="current-password" required />
      </label>
      <button>Sign in</button>
    </form>`;
  await sendPage(request, reply, { title: 'Sign in', body, code });
}
