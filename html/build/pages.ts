// One index page for each depth of address.  With a `base` that leads back to
// the mount, assets are found from /console/ as from
// /console/sandboxes/{id}/files, whatever stands in front of /console/.

import type { Plugin } from 'vite';

// The deepest address has two parts behind its directory: sandboxes/{id}/files
const DEPTH = 3;
const BASE = '<base href="./">';

const up = (depth: number) => '../'.repeat(depth) || './';

export function pages(): Plugin {
  return {
    name: 'console-pages',
    enforce: 'post',

    transformIndexHtml(html, { originalUrl }) {
      if (originalUrl === undefined) {
        return html;
      }

      const rest = originalUrl.split('?')[0]!.replace(/^\/console\//, '');
      return html.replace(BASE, `<base href="${up(rest.split('/').length - 1)}">`);
    },

    generateBundle(_options, bundle) {
      const index = bundle['index.html'];

      if (index?.type !== 'asset') {
        throw new Error('the build has made no index.html');
      }

      const source = String(index.source);

      if (!source.includes(BASE)) {
        throw new Error(`index.html has no ${BASE}`);
      }

      for (let depth = 1; depth <= DEPTH; depth++) {
        this.emitFile({
          type: 'asset',
          fileName: `index-${depth}.html`,
          source: source.replace(BASE, `<base href="${up(depth)}">`),
        });
      }
    },
  };
}
