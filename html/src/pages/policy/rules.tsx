import { useTranslation } from 'react-i18next';
import type { Judgement, Place, PolicyInForce, Rule } from '@/api/policy';
import { cx } from '@/lib/cx';
import { harmless, PlainText, Recorded } from '@/ui/plain-text';
import { Tag } from '@/ui/status';

export const ruleAnchor = (policy: number, line: number) => `rule-${policy}-${line}`;

/** Where: a server that answers to any name is not worth one. */
export const placesText = (places: Place[]) => harmless(
  [...new Set(places.map((p) => (p.server && p.server !== '_' ? `${p.server} ${p.location}` : p.location)))].join(', '));

const TONES = { allow: 'good', deny: 'bad', observe: 'warn' } as const;

/** A rule as it stands in its file, with the numbers of its lines. */
function OneRule({ rule, anchor, decides }: { rule: Rule; anchor: string; decides: string | null }) {
  const { t } = useTranslation('policy');
  const lines = rule.text.split('\n');

  return (
    <li id={anchor} tabIndex={-1} data-rule={rule.name}
      className={cx('scroll-mt-2 border-t outline-none', decides && 'bg-tint')}
    >
      <div className="flex flex-wrap items-center gap-2 px-3 pt-2 text-sm">
        <Tag tone={TONES[rule.effect]}>{t(`effect.${rule.effect}`)}</Tag>
        <Recorded text={rule.name} className="font-medium" />
        <span className="text-xs text-dim">{t('line', { line: rule.line })}</span>
        {decides && <Tag tone="accent">{decides}</Tag>}
      </div>
      <div className="flex pl-3">
        <pre aria-hidden className="recorded shrink-0 select-none py-2 text-right leading-5 text-dim">
          {lines.map((_, i) => rule.line + i).join('\n')}
        </pre>
        <PlainText text={rule.text} wrap={false} className="min-w-0 flex-1" />
      </div>
    </li>
  );
}

/** A policy and where it is in force. */
export function Rules({ item, number, said }: { item: PolicyInForce; number: number; said: Judgement | null }) {
  const { t } = useTranslation('policy');
  const { policy } = item;

  const decides = (rule: Rule) => {
    if (said?.line === rule.line) {
      return t('decides');
    }
    return said?.observed?.line === rule.line ? t('wouldDeny') : null;
  };

  return (
    <section aria-label={t('policyOf', { places: placesText(item.places) })} className="min-w-0 overflow-hidden rounded-md border">
      <div className="flex flex-wrap items-baseline gap-x-3 bg-raised px-3 py-2">
        <h2 className="text-sm font-medium [overflow-wrap:anywhere]">
          {policy ? <Recorded text={policy.name} /> : t('noPolicy')}
        </h2>
        <span className="text-xs text-dim [overflow-wrap:anywhere]">{t('inForce', { places: placesText(item.places) })}</span>
      </div>
      {policy ? (
        <ol>
          {[...policy.rules, policy.default].map((rule) => (
            <OneRule key={rule.line} rule={rule} anchor={ruleAnchor(number, rule.line)} decides={decides(rule)} />
          ))}
        </ol>
      ) : <p className="border-t px-3 py-2 text-sm text-dim">{t('noPolicyHint')}</p>}
    </section>
  );
}
