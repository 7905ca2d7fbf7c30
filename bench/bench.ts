/** `npm run bench` lists the benchmarks here, `npm run bench <name> [argument …]` runs one. */
import { readdirSync } from 'node:fs';

const files = readdirSync(import.meta.dirname).filter((file) => file.endsWith('.ts'));
const names = files.map((file) => file.slice(0, -3)).filter((name) => name !== 'bench');
const name = process.argv[2] ?? '';

if (names.includes(name)) {
  // The benchmark finds its own arguments where it would find them when run alone.
  process.argv.splice(1, 2, name);
  const { main } = await import(`./${name}.ts`);
  await main?.(process.argv.slice(2));
} else {
  console.log(`npm run bench <name>, where <name> is one of: ${names.join(', ')}`);
  process.exitCode = name === '' ? 0 : 2;
}
