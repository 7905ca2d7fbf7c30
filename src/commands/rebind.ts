import { existsSync } from 'node:fs';
import { type Called, looking } from '../compose/command-options.ts';
import { loadConfig } from '../config/load-config.ts';
import { Invalid } from '../domain/errors.ts';
import type { Snapshot } from '../store/snapshot.ts';
import { bind, boundTo, bindingState, prove, strange } from '../engine/account/account-binding.ts';
import { accountOf } from '../compose/assemble-mirror.ts';
import { withSnapshot } from '../compose/mirror-files.ts';
import { connect } from '../compose/platform-connection.ts';
import { orHandOver } from '../app/remote/worker-handover.ts';
import { print } from '../app/snapshot-command.ts';
import type { Shell } from '../compose/process-shell.ts';
import { exitCode } from '../compose/output/failure-report.ts';

export const options = { ...looking };

export const help = `
For a platform that has moved to another address, which is proven first, by reading alone, to be the
same organization: a template names it, else most of 20 recorded people are there. It is refused
otherwise (exit code ${exitCode('invalid')}). Also for a mirror that was renamed. Nothing is run.

For a new key alone it is not needed: write the key where platform.apiKey is read from, restart a
worker that has it from the environment, and call \`check\` and \`sync\`, which prove the same.`;

export async function run({ flags }: Called<typeof looking>, shell: Shell): Promise<number> {
  const config = loadConfig(flags.config, shell.env);
  if (!existsSync(config.snapshot)) {
    throw new Invalid(`${config.snapshot}: there is no snapshot yet, so nothing to move`, {
      fix: 'the first sync makes it',
    });
  }
  const act = async (snapshot: Snapshot) => {
    const platform = connect(config, shell);
    try {
      const { url: was = null, mirror: former = config.mirror } = boundTo(snapshot);
      const account = accountOf(config, platform);
      const isRenamed = bindingState(snapshot, account) === 'other mirror';
      const standing = bindingState(snapshot, { ...account, mirror: former });
      // The next run binds a snapshot that contains no record.
      const needsProof = standing !== 'free' && standing !== 'ours';
      const proof = needsProof ? await prove(snapshot, account, shell.stop) : undefined;
      if (proof && !proof.same) throw strange(proof);
      const moves = proof !== undefined || isRenamed;
      if (moves) bind(snapshot, account);
      const { mirror } = config;
      const { url } = config.platform;
      const document = { mirror, was, url, moved: moves, proof: proof ?? null };
      const isHere = was === url;
      const moved = isHere
        ? `belongs to another key of ${url} now`
        : `has moved from ${was} to ${url}`;
      const stays = isHere
        ? `belongs to ${url} and this key already`
        : 'has no record: the next run binds it';
      const line = proof
        ? `The snapshot of ${mirror} ${moved}; proven to be the same organization: ${proof.how}.`
        : `The snapshot of ${mirror} ${stays}.`;
      const renamed = `The name is new; until now it was that of the mirror ${former}.`;
      return print({ document, lines: [line, ...(isRenamed ? [renamed] : [])] }, flags, shell);
    } finally {
      await platform.close();
    }
  };
  const held = shell.held?.();
  return held
    ? act(held.mirror.snapshot)
    : orHandOver(config, shell, async () => withSnapshot(config, act));
}
