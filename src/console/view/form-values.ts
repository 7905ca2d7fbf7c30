/** Reads the values of a form that a browser has sent. */
import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { Invalid } from '../../domain/errors.ts';

/** Returns the values. Throws Invalid for what no form of the console sends. */
export function formOf<Values>({ body }: FastifyRequest, form: z.ZodType<Values>): Values {
  const read = form.safeParse(body ?? {});
  if (read.success) return read.data;
  throw new Invalid('the form is not as this console sends it', { fix: 'go back and reload' });
}
