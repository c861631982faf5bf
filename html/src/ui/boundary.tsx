import { Component, type ReactNode } from 'react';
import { TriangleAlert } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { Button } from './button';
import { Empty } from './empty';
import { ErrorNote } from './error-note';

function Failed({ error }: { error: unknown }) {
  const { t } = useTranslation();

  return (
    <Empty icon={TriangleAlert} title={t('partFailed')}>
      <ErrorNote error={error} />
      <div><Button onClick={() => location.reload()}>{t('reload')}</Button></div>
    </Empty>
  );
}

interface Props {
  /** What is shown in it: another one is tried anew. */
  of: string;
  children: ReactNode;
}

/** A part of a page that could not be loaded or drawn; the rest of the page stays as it is. */
export class Boundary extends Component<Props, { failed: { error: unknown } | null }> {
  override state = { failed: null as { error: unknown } | null };

  static getDerivedStateFromError(error: unknown) {
    return { failed: { error } };
  }

  override componentDidUpdate(was: Props) {
    if (was.of !== this.props.of && this.state.failed) {
      this.setState({ failed: null });
    }
  }

  override render() {
    return this.state.failed ? <Failed error={this.state.failed.error} /> : this.props.children;
  }
}
