import { z } from 'zod';
import type { Request } from '../../../src/domain/exchange.ts';

const body = z.object({
  email: z.string().optional(),
  contact_id: z.string().optional(),
  subscription: z.enum(['opt_in', 'opt_out']).optional(),
  name: z.string().optional(),
  status: z.string().optional(),
});

/** The person or template that a body names. */
export interface Asked {
  /** Of nobody who is named by id. */
  email?: string | undefined;
  id?: string | undefined;
  subscription?: 'opt_in' | 'opt_out' | undefined;
  /** Of a template. */
  name?: string | undefined;
  status?: string | undefined;
}

export function asked(request: Request): Asked {
  const read = body.safeParse(JSON.parse(request.body ?? '{}'));
  if (!read.success) return {};
  const { email, contact_id: id, ...rest } = read.data;
  return { ...rest, id, email: id === undefined ? email : undefined };
}
