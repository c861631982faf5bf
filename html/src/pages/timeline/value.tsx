import { useTranslation } from 'react-i18next';
import { useNavigate, useParams } from 'react-router';
import { Ban, Copy, Filter } from 'lucide-react';
import { copyText } from '@/ui/copy';
import { Menu, MenuItem } from '@/ui/menu';
import { Recorded } from '@/ui/plain-text';
import { toastError } from '@/ui/toast';
import { except, inSandbox, only, type Property, type SetTimelineSearch, type TimelineSearch } from './filters';

interface Props {
  name: Property;
  value: string;
  label?: string;
  search: TimelineSearch;
  setSearch: SetTimelineSearch;
  className?: string;
}

/** A value that the list can be narrowed to, or freed of, right where it is shown. */
export function Value({ name, value, label = value, search, setSearch, className }: Props) {
  const { t } = useTranslation('timeline');
  const { t: common } = useTranslation();
  const navigate = useNavigate();
  const { run } = useParams();

  return (
    <Menu align="start" trigger={(
      <button type="button" title={t(`filter.${name}`)}
        className={`max-w-64 min-w-0 truncate rounded-sm border px-1.5 text-left text-xs hover:border-strong ${className ?? ''}`}
      >
        <Recorded text={label} />
      </button>
    )}
    >
      <MenuItem icon={<Filter size={14} aria-hidden />} onSelect={() => (name === 'sandbox'
        ? void navigate(inSandbox(value, search, run)) : setSearch(only(search, name, value)))}
      >
        {t('onlyThis')}
      </MenuItem>
      <MenuItem icon={<Ban size={14} aria-hidden />} onSelect={() => setSearch(except(search, name, value))}>{t('exceptThis')}</MenuItem>
      <MenuItem icon={<Copy size={14} aria-hidden />} onSelect={() => void copyText(value).catch(toastError)}>{common('copy')}</MenuItem>
    </Menu>
  );
}
